package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/version"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// tests holds the test binaries of one SDK.
type tests struct {
	suite    suite
	dir      string   // of the copy of the SDK
	binaries string   // the folder of the binaries, with a folder for each package as in dir
	packages []string // the packages with tests, relative to dir
	unbuilt  string   // output of go test if a package could not be built; "": all were
}

// build downloads the SDK, copies it below work, and builds its tests against the overlay (changed files) of the standard library. go test gives each built
// test binary to this program (-exec), which keeps it in place of running it. An earlier copy is removed. Packages that cannot be built are no error: the
// result's unbuilt has the output of go test then.
func build(ctx context.Context, s suite, overlay, work string) (*tests, error) {
	t := &tests{suite: s, dir: filepath.Join(work, s.name, "src"), binaries: filepath.Join(work, s.name, "bin")}
	if err := os.RemoveAll(filepath.Join(work, s.name)); err != nil {
		return nil, err
	}
	module, err := download(ctx, s.module)
	if err != nil {
		return nil, err
	}
	if err := copyModule(t.dir, module.Dir); err != nil {
		return nil, err
	}
	if err := t.require(ctx); err != nil {
		return nil, err
	}
	if err := t.install(ctx); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"test", "-vet=off", "-count=1", "-overlay", overlay, "-exec", fmt.Sprintf("%q %s %q", self, keepCommand, t.binaries)}
	for _, p := range t.packages {
		args = append(args, "./"+p)
	}
	out, err := t.command(ctx, "go", args...).CombinedOutput()
	if err != nil {
		t.unbuilt = string(out)
	}
	return t, ctx.Err()
}

// command returns a command that runs in the copy. It may change the copy's go.mod.
func (t *tests) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0", "SUITES_ROOT="+t.dir)
	return cmd
}

// module is one answer of go mod download.
type module struct{ Path, Version, Dir, Error string }

// download puts a module (path@version) into the module cache and returns its place there. The output of go has the reason of a failure, so it is read before
// the command's error.
func download(ctx context.Context, name string) (m module, err error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", name).Output()
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("go mod download: %w", err)
	}
	if m.Error != "" {
		return m, fmt.Errorf("%s", m.Error)
	}
	return m, err
}

// copyModule copies a module from the cache, which is read-only, to a folder without it, with
// files that can be written.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm()|0o200)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
		return out.Close()
	})
}

// require makes the SDK's copy depend on the module of these suites and on oncehttp, as they are in this checkout. Modules that the SDK replaces by its own
// folders come from the proxy, since the download lacks these folders.
func (t *tests) require(ctx context.Context) error {
	var gomod struct {
		Go      string
		Replace []struct{ Old, New module }
	}
	out, err := t.command(ctx, "go", "mod", "edit", "-json").Output()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, &gomod); err != nil {
		return err
	}
	here, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return err
	}
	suites := strings.TrimSpace(string(here))
	args := []string{"mod", "edit", "-toolchain=none"}
	if version.Compare("go"+gomod.Go, "go1.25.0") < 0 { // what oncehttp needs
		args = append(args, "-go=1.25.0")
	}
	for name, dir := range map[string]string{"": filepath.Dir(filepath.Dir(suites)), "/clients/suites": suites} {
		name = "github.com/oncehttp/oncehttp" + name
		args = append(args, "-require="+name+"@v0.0.0-00010101000000-000000000000", "-replace="+name+"="+dir)
	}
	for _, r := range gomod.Replace {
		if strings.HasPrefix(r.New.Path, ".") {
			args = append(args, "-dropreplace="+strings.TrimSuffix(r.Old.Path+"@"+r.Old.Version, "@"))
		}
	}
	return run(t.command(ctx, "go", args...))
}

// install lists the packages with tests in t.packages, and adds a test file to each that puts oncehttp under the http.Clients of the tests. A suite with only
// has just the packages that match it. The file sets a hook, http.OncehttpBeneath, that only the changed standard library has.
func (t *tests) install(ctx context.Context) error {
	list := t.command(ctx, "go", "list", "-e", "-f", "{{.Dir}}\t{{.Name}}\t{{len .TestGoFiles}}{{len .XTestGoFiles}}", "./...")
	var complaints bytes.Buffer
	list.Stderr = &complaints
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, &complaints)
	}
	runs, err := regexp.Compile("^(" + t.suite.only + ")$")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t") // folder, name, and the two numbers of test files: "00" for none
		rel, err := filepath.Rel(t.dir, fields[0])
		if err != nil {
			return err
		}
		if fields[2] == "00" || t.suite.only != "" && !runs.MatchString(rel) {
			continue
		}
		t.packages = append(t.packages, rel)
		text := "package " + strings.TrimSuffix(fields[1], "_test") + "_test\n\nimport (\n\t\"net/http\"\n\n" +
			"\t\"github.com/oncehttp/oncehttp/clients/suites/beneath\"\n)\n\nvar _ = beneath.Install(&http.OncehttpBeneath)\n"
		if err := write(filepath.Join(fields[0], "oncehttp_beneath_test.go"), text); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command. Its error includes the output.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, out)
	}
	return nil
}

// keepCommand is the first argument of this program when go test calls it with a test binary.
const keepCommand = "keep-binary"

// keep moves a test binary below binaries, to the same folder as its package. go test calls it
// in the package's folder, in place of the binary. SUITES_ROOT is the folder of the SDK's copy.
func keep(binaries, binary string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(os.Getenv("SUITES_ROOT"), dir)
	if err != nil {
		return err
	}
	to := filepath.Join(binaries, rel, binaryName)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(binary, to)
}

const binaryName = "suite.test"

// binary returns the path of a package's test binary, which exists only if it was built.
func (t *tests) binary(rel string) string { return filepath.Join(t.binaries, rel, binaryName) }
