//! `polypath keygen`, `pubkey` and `hit`: identities and their names.

pub mod file;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polypath_hip::{Identity, KeyKind, PublicIdentity, Random};
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::{KeyAlgorithm, KeyArgs, KeygenArgs};
use crate::failure::{Failure, print_json, printed};

/// Makes an identity and keeps it.
pub fn keygen(args: &KeygenArgs) -> Result<(), Failure> {
    let file = file::path_or_default(args.out.as_deref())?;
    let identity = generate(args.algorithm)?;
    file::store(&file, &identity, args.force)?;
    let (kind, hit) = (identity.public().kind(), identity.hit());
    if args.json {
        return print_json(&json!({ "file": file, "algorithm": kind.to_string(), "hit": hit }));
    }
    printed(writeln!(io::stdout(), "wrote {}\n{kind}, HIT {hit}", file.display()))
}

pub fn generate(algorithm: KeyAlgorithm) -> Result<Identity, Failure> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|e| Failure::system("the system gives no random numbers", e))?;
    let mut random = Random::from_seed(*seed);
    match algorithm {
        KeyAlgorithm::EcdsaP256 => Identity::generate(KeyKind::P256, &mut random),
        KeyAlgorithm::EcdsaP384 => Identity::generate(KeyKind::P384, &mut random),
        KeyAlgorithm::Rsa2048 => Identity::generate_rsa(2048),
        KeyAlgorithm::Rsa3072 => Identity::generate_rsa(3072),
        KeyAlgorithm::Rsa4096 => Identity::generate_rsa(4096),
    }
    .map_err(|e| Failure::system("cannot make a key", e))
}

/// The key of the daemon, unless its configuration names another one.
const DAEMON_KEY: &str = "/etc/polypath/identity.pem";

/// The key file to use: `file`, or the default one, which is made if it does not exist.
pub fn ensure(file: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = file::path_or_default(file)?;
    if file.is_none() && !path.exists() {
        file::store(&path, &generate(KeyAlgorithm::EcdsaP384)?, false)?;
        eprintln!("made an identity for this host: {}", path.display());
    }
    Ok(path)
}

/// Prints the public key of an identity.
pub fn pubkey(args: &KeyArgs) -> Result<(), Failure> {
    let public = public(args.file.as_deref())?;
    let pem = public.to_pem().map_err(|e| Failure::system("cannot encode the key", e))?;
    if args.json {
        let (algorithm, hit) = (public.kind().to_string(), public.hit());
        return print_json(&json!({ "algorithm": algorithm, "hit": hit, "public_key": pem }));
    }
    printed(write!(io::stdout(), "{pem}"))
}

/// Prints the name of an identity.
pub fn hit(args: &KeyArgs) -> Result<(), Failure> {
    if args.file.is_none() && Path::new(DAEMON_KEY).exists() {
        eprintln!("note: the daemon has a key of its own: polypath hit {DAEMON_KEY}");
    }
    let public = public(args.file.as_deref())?;
    if args.json {
        return print_json(&json!({ "algorithm": public.kind().to_string(), "hit": public.hit() }));
    }
    printed(writeln!(io::stdout(), "{}", public.hit()))
}

fn public(file: Option<&Path>) -> Result<PublicIdentity, Failure> {
    file::load_public(&ensure(file)?)
}
