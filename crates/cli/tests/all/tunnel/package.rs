//! The Debian package: what it holds, and what is left of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use polypath_testbed::netns::may_create;
use polypath_testing::{installed, skip};

use super::host::shell;

/// Installs, removes and purges it where all that is written goes to memory; `$1` is the package, `$2` an empty directory.
const SCRIPT: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
mount -t tmpfs none "$2"
cp "$1" "$2/polypath.deb"
mkdir "$2/new" "$2/work" "$2/host"
mount -t overlay none -o "lowerdir=/,upperdir=$2/new,workdir=$2/work" "$2/host"
mount --bind "$2" "$2/host/mnt"
mount -t proc none "$2/host/proc"
mount -t tmpfs none "$2/host/run"
root=$2/host
run() { chroot "$root" "$@"; }
state() { (cd "$root" && find etc usr var/lib/dpkg/info var/lib/polypath var/lib/systemd 2> /dev/null | sort | grep -v -e '^etc/.*-$' -e ldconfig -e triggers); }
rm -f "$root/usr/sbin/policy-rc.d" "$root/var/lib/man-db/auto-update" # which reads all manuals of the system again
state > "$2/before"
run dpkg --force-depends -i /mnt/polypath.deb
run getent passwd polypath
test "$(run stat -c '%U:%G %a' /etc/polypath)" = "root:polypath 2750"
test "$(run stat -c '%U:%G' /var/lib/polypath)" = "polypath:polypath"
run polypath --version
test "$(run polypath init 2>/dev/null | cut -d' ' -f1-2)" = "polypath init"
test "$(run stat -c '%G %a' /etc/polypath/polypath.toml)" = "polypath 640"
test "$(run stat -c '%a' /etc/polypath/identity.pem)" = "600"
cmp "$root/etc/polypath/polypath.toml" "$root/usr/share/doc/polypath/examples/polypath.toml"
! command -v systemd-analyze > /dev/null || run systemd-analyze verify --man=no /usr/lib/systemd/system/polypath.service
mkdir -p "$root/run/systemd/system" "$2/bin"
printf '#!/bin/sh\necho "$*" >> /mnt/asked; case "$*" in *is-active*) test -e /mnt/active;; *daemon-reload) ;; *) false;; esac\n' > "$2/bin/systemctl"
chmod 755 "$2/bin/systemctl"
upgrade() {
    rm -f "$2/asked"
    PATH=/mnt/bin:$PATH run dpkg --force-depends -i /mnt/polypath.deb 2> "$2/said"
    test "$(run dpkg-query -W -f '${Status}' polypath)" = "install ok installed"
    grep -q daemon-reload "$2/asked"
}
asked=$2/asked
restarts() { grep -q 'restart polypath.service' "$asked"; }
upgrade "$@"
if restarts; then exit 1; fi
touch "$2/active"
upgrade "$@"
restarts
sed -i 's/^mtu =/mut =/' "$root/etc/polypath/polypath.toml"
upgrade "$@"
if restarts; then exit 1; fi
grep -q 'tunnel.mut: unknown key' "$2/said"
grep -q 'the service of version .* goes on' "$2/said"
rm -r "$root/run/systemd"
run systemctl enable polypath.service 2> /dev/null
test -h "$root/etc/systemd/system/multi-user.target.wants/polypath.service"
mkdir "$root/run/polypath" "$root/run/polypath-testbed"
run dpkg -r polypath
test ! -h "$root/etc/systemd/system/multi-user.target.wants/polypath.service"
test ! -e "$root/run/polypath" -a -e "$root/run/polypath-testbed"
test -s "$root/etc/polypath/identity.pem"
test ! -e "$root/usr/bin/polypath" -a ! -e "$root/usr/share/doc/polypath"
run dpkg --purge polypath
state > "$2/after"
diff "$2/before" "$2/after"
if run getent passwd polypath; then exit 1; fi
"#;

/// Every relative link of the pages in `doc` and in `doc`/docs.
fn links_lead_somewhere(doc: &Path) {
    for dir in [doc.to_owned(), doc.join("docs")] {
        let files = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path());
        for page in files.filter(|file| file.extension().is_some_and(|end| end == "md")) {
            let text = fs::read_to_string(&page).unwrap();
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let file = link.split(['#', ' ']).next().unwrap();
                assert!(link.contains("://") || dir.join(file).exists(), "{}: {link}", page.display());
            }
        }
    }
}

#[test]
fn a_package_is_installed_whole_and_leaves_nothing_when_it_is_purged() {
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    if !may_create() || !users.contains("4294967295") {
        return skip("a file system of its own, with all users in it, needs root");
    }
    if !installed(&["dpkg-deb", "readelf", "adduser", "unshare"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/deb");
    let mut make = Command::new(tool);
    // The binary of tests is large: xz would take a minute for it.
    make.envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")]);
    let made = make.arg(env!("CARGO_BIN_EXE_polypath")).arg(dir.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let package = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let listed = Command::new("dpkg-deb").args(["-c", &package]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for file in [
        "usr/bin/polypath",
        "usr/lib/systemd/system/polypath.service",
        "usr/share/man/man1/polypath-up.1.gz",
        "usr/share/bash-completion/completions/polypath",
        "usr/share/zsh/vendor-completions/_polypath",
        "usr/share/fish/vendor_completions.d/polypath.fish",
        "usr/share/doc/polypath/copyright",
        "usr/share/doc/polypath/docs/daemon.md",
        "usr/share/doc/polypath/examples/polypath.toml",
    ] {
        assert!(listed.contains(&format!("./{file}\n")), "{file}: {listed}");
    }
    let root = dir.path().join("root");
    assert!(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root).status().unwrap().success());
    links_lead_somewhere(&root.join("usr/share/doc/polypath"));
    let script = dir.path().join("script");
    fs::write(&script, SCRIPT).unwrap();
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let words = [
        "unshare",
        "--mount",
        "--net",
        "sh",
        "-eu",
        script.to_str().unwrap(),
        &package,
        empty.to_str().unwrap(),
    ];
    shell(&words.join(" "));
}
