//! Key files: where they are, and who may read them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use polypath_hip::{CryptoError, Identity, PublicIdentity};
use polypath_node::owner;
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::made::Made;

/// Longer files are no keys.
const LONGEST: u64 = 64 * 1024;

/// Where the identity is if nobody says otherwise: in the user's configuration directory.
fn default_path() -> Result<PathBuf, Failure> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let config = config.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    let config = config.ok_or_else(|| {
        Failure::usage("no home directory to look for an identity in").help("name the key file")
    })?;
    Ok(config.join("polypath/identity.pem"))
}

/// `file`, or the default.
pub fn path_or_default(file: Option<&Path>) -> Result<PathBuf, Failure> {
    file.map_or_else(default_path, |file| Ok(file.to_owned()))
}

/// Reads the private key in `file`, which nobody but its owner may read.
pub fn load(file: &Path) -> Result<Identity, Failure> {
    let pem = read(file)?;
    parse_private(file, &pem)
}

/// Reads a public key, or derives it from a private one.
pub fn load_public(file: &Path) -> Result<PublicIdentity, Failure> {
    let pem = read(file)?;
    if !pem.contains("-----BEGIN PUBLIC KEY-----") {
        return Ok(parse_private(file, &pem)?.public().clone());
    }
    PublicIdentity::from_pem(&pem).map_err(|e| {
        let help =
            "a public key of ECDSA P-256 or P-384, or of RSA from 2048 bits, as `polypath pubkey` prints it";
        unusable(file, e).help(help)
    })
}

/// Writes `identity` so that only its owner can read it; a file that is there stays unless `replace`.
/// The file appears whole or not at all.
pub fn store(file: &Path, identity: &Identity, replace: bool) -> Result<(), Failure> {
    let pem = identity.to_pem().map_err(|e| Failure::system("cannot encode the key", e))?;
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |e: io::Error| Failure::unwritten(file, &e);
    let made = Made::around(file, 0o700).map_err(failed)?;
    let mut draft = NamedTempFile::new_in(dir).map_err(failed)?;
    draft.as_file().set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed)?;
    draft.write_all(pem.as_bytes()).and_then(|()| draft.as_file().sync_all()).map_err(failed)?;
    let stored = if replace { draft.persist(file) } else { draft.persist_noclobber(file) };
    stored.map(|_| made.keep()).map_err(|e| match e.error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => failed(e.error),
    })
}

fn exists(file: &Path) -> Failure {
    Failure::usage(format!("{} exists already", file.display())).help(
        "--force replaces it: this host then has another HIT, and its peers need the new one; or choose --out",
    )
}

fn read(file: &Path) -> Result<Zeroizing<String>, Failure> {
    let failed = |e: io::Error| {
        let failure = Failure::system(format!("cannot read {}", file.display()), &e);
        match e.kind() {
            io::ErrorKind::NotFound => {
                failure.help(format!("make an identity with: polypath keygen --out {}", file.display()))
            }
            io::ErrorKind::PermissionDenied => {
                failure.help("only its owner and root may read it: run it as one of them")
            }
            _ => failure,
        }
    };
    if !fs::metadata(file).map_err(failed)?.is_file() {
        let what = format!("{} is not a regular file", file.display());
        return Err(Failure::usage(what).help("name the file of a key; polypath keygen makes one"));
    }
    let opened = File::open(file).map_err(failed)?;
    let meta = opened.metadata().map_err(failed)?;
    let mut pem = Zeroizing::new(String::new());
    opened.take(LONGEST).read_to_string(&mut pem).map_err(failed)?;
    let mode = meta.permissions().mode() & 0o777;
    let is_private = pem.contains("PRIVATE KEY-----");
    if is_private && !owner::is_trusted(&meta) {
        let name = file.display();
        return Err(Failure::usage(format!("{name} belongs to another user, who may read and change it"))
            .help(format!("chown root {name}; {}", another(file))));
    }
    if is_private && mode & 0o077 != 0 {
        let open = format!("{} can be read or changed by others (mode {mode:04o})", file.display());
        return Err(Failure::usage(open).help(format!("chmod 600 {}; {}", file.display(), another(file))));
    }
    Ok(pem)
}

/// What to do about a key that others may have.
fn another(file: &Path) -> String {
    let name = file.display();
    format!(
        "if others had access, polypath keygen --force --out {name} makes another one, whose tag the peers need"
    )
}

fn parse_private(file: &Path, pem: &str) -> Result<Identity, Failure> {
    Identity::from_pem(pem).map_err(|e| {
        let name = file.display();
        unusable(file, e).help(match e {
            CryptoError::Encrypted => format!("write it without one: openssl pkcs8 -in {name} -out NEW"),
            _ => "a private key of ECDSA P-256 or P-384, or of RSA from 2048 bits, in PEM".into(),
        })
    })
}

fn unusable(file: &Path, error: CryptoError) -> Failure {
    let what = match error {
        CryptoError::Key => "is no key that we can use".to_owned(),
        CryptoError::Encrypted => "has a passphrase".to_owned(),
        other => format!("cannot be used: {other}"),
    };
    Failure::usage(format!("{} {what}", file.display()))
}
