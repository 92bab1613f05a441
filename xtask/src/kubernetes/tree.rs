//! Kubernetes' source, and how programs are built from it: the code for the API's description is generated first, which the source lacks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::parts::Parts;
use crate::error::{XtaskError, at, not_started};
use crate::workspace::carry_out_quietly;

/// The tree's name as a Go package.
const PACKAGE: &str = "k8s.io/kubernetes";
/// The programs to build.
const PROGRAMS: [&str; 4] = [
    "./cmd/kube-apiserver",
    "./cmd/kube-controller-manager",
    "./cmd/kube-scheduler",
    "./cmd/hollow-node",
];
/// The source's own versions of these libraries crash in programs of Go 1.18 and later. Debian has newer ones as packages.
const NEWER: [&str; 2] = ["github.com/modern-go/reflect2", "github.com/json-iterator/go"];
/// The comment that marks the packages whose types are described.
const MARK: &str = "^// *+k8s:openapi-gen=";
/// Folders with marked packages that no server uses.
const NOT_SERVED: [&str; 2] = ["k8s.io/code-generator/", "k8s.io/sample-apiserver/"];
const GENERATOR: &str = "k8s.io/kube-openapi/cmd/openapi-gen";

/// The unpacked source with a compiler.
pub struct Tree {
    work: PathBuf,
    path: PathBuf,
    go: PathBuf,
}

impl Tree {
    /// Unpacks the source into a folder where the compiler finds it.
    pub fn unpack(parts: &Parts, work: &Path) -> Result<Self, XtaskError> {
        let path = work.join("go/src").join(PACKAGE);
        std::fs::create_dir_all(&path).map_err(at(&path))?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&parts.source).arg("-C").arg(&path);
        carry_out_quietly(tar.arg("--strip-components=1"), "tar -x")?;
        let tree = Self {
            work: work.to_owned(),
            path,
            go: parts.root.join("usr/lib/go-1.19/bin/go"),
        };
        for library in NEWER {
            let newer = parts.root.join("usr/share/gocode/src").join(library);
            replace(&tree.path.join("vendor").join(library), &newer)?;
        }
        Ok(tree)
    }

    /// Adds or replaces a file.
    pub fn write(&self, name: &str, text: &str) -> Result<(), XtaskError> {
        let file = self.path.join(name);
        let folder = file.parent().unwrap_or(&self.path);
        std::fs::create_dir_all(folder).map_err(at(folder))?;
        std::fs::write(&file, text).map_err(at(&file))
    }

    /// Generates the code that describes the API.
    pub fn describe_api(&self) -> Result<(), XtaskError> {
        let generator = self.work.join("openapi-gen");
        let mut build = self.go("build");
        build.arg("-o").arg(&generator);
        build.arg(format!("./vendor/{GENERATOR}"));
        carry_out_quietly(&mut build, "go build openapi-gen")?;
        let mut generate = self.in_tree(&generator);
        generate
            .args(["--logtostderr", "-O", "zz_generated.openapi", "-h"])
            .arg("hack/boilerplate/boilerplate.generatego.txt")
            .args(["-p", &format!("{PACKAGE}/pkg/generated/openapi"), "-r"])
            .arg(self.work.join("violations"))
            .args(["-i", &self.described_packages()?.join(",")]);
        carry_out_quietly(&mut generate, "openapi-gen")
    }

    /// The names of the packages whose types are described.
    fn described_packages(&self) -> Result<Vec<String>, XtaskError> {
        let mut grep = Command::new("grep");
        grep.args(["-rl", "--include=*.go", "--exclude=*_test.go", MARK])
            .args(["pkg", "staging/src/k8s.io", "vendor/k8s.io"])
            .current_dir(&self.path)
            .stdin(Stdio::null());
        let found = grep.output().map_err(not_started("grep"))?;
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        let packages: BTreeSet<_> = found.lines().filter_map(package_of).collect();
        Ok(packages.into_iter().collect())
    }

    /// Builds the programs into a folder.
    pub fn build(&self, version: &str, into: &Path) -> Result<(), XtaskError> {
        let mut build = self.go("build");
        // Clouds' own storage and routes are for clusters in those clouds. Without them the programs are half as large.
        build.args(["-tags", "providerless"]);
        build.arg("-ldflags").arg(version_flags(version));
        build.arg("-o").arg(into).args(PROGRAMS);
        carry_out_quietly(&mut build, "go build")
    }

    fn go(&self, verb: &str) -> Command {
        let mut command = self.in_tree(&self.go);
        command.arg(verb);
        command
    }

    /// A program that neither reads the user's settings of Go nor writes outside the work folder.
    fn in_tree(&self, program: &Path) -> Command {
        let mut command = Command::new("nice");
        command
            .arg(program)
            .current_dir(&self.path)
            .env_clear()
            .env("PATH", path_with(&self.go))
            .env("HOME", &self.work)
            .env("TMPDIR", &self.work)
            .env("GOPATH", self.work.join("go"))
            .env("GOCACHE", self.work.join("cache"))
            .envs([("CGO_ENABLED", "0"), ("GO111MODULE", "off"), ("GOPROXY", "off")]);
        command
    }
}

/// The generator calls the compiler by name.
fn path_with(go: &Path) -> String {
    let folder = go.parent().unwrap_or(go).display();
    format!("{folder}:/usr/bin:/bin")
}

fn replace(old: &Path, new: &Path) -> Result<(), XtaskError> {
    std::fs::remove_dir_all(old).map_err(at(old))?;
    let mut copy = Command::new("cp");
    carry_out_quietly(copy.args(["-rL", "--"]).args([new, old]), "cp -r")
}

/// The name of a file's package, if a server uses it.
fn package_of(file: &str) -> Option<String> {
    let (folder, _) = file.rsplit_once('/')?;
    if NOT_SERVED.iter().any(|other| folder.contains(other)) {
        return None;
    }
    // Staged packages are linked into the folder of the vendored ones.
    let folder = folder.replacen("staging/src/", "vendor/", 1);
    Some(format!("{PACKAGE}/{folder}"))
}

/// The version that the programs report.
fn version_flags(version: &str) -> String {
    let mut numbers = version.split('.');
    let major = numbers.next().unwrap_or_default();
    let minor = numbers.next().unwrap_or_default();
    let mut flags = "-s -w".to_owned();
    for package in ["component-base/version", "client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", format!("v{version}").as_str()),
            ("gitMajor", major),
            ("gitMinor", minor),
        ] {
            flags.push_str(&format!(" -X {PACKAGE}/vendor/k8s.io/{package}.{name}={value}"));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staged_file_belongs_to_a_vendored_package() {
        let name = |file| package_of(file).unwrap();
        assert_eq!(
            name("staging/src/k8s.io/api/core/v1/doc.go"),
            "k8s.io/kubernetes/vendor/k8s.io/api/core/v1"
        );
        assert_eq!(
            name("pkg/proxy/config/doc.go"),
            "k8s.io/kubernetes/pkg/proxy/config"
        );
        assert_eq!(
            package_of("staging/src/k8s.io/sample-apiserver/pkg/apis/wardle/v1/doc.go"),
            None
        );
    }
}
