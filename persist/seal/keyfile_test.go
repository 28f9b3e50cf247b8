package seal_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist/seal"
)

// keyFile writes a file of keys.
func keyFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "seal.keys")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	coded := func(letter string) string {
		return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(letter), 32))
	}
	text := "# keys\r\n\r\n b:" + coded("b") + " \r\nhash-keys:" + coded("h") + "\na:" + coded("a") // no line end
	got, err := seal.ReadFile(keyFile(t, text, 0o400))
	want := seal.Config{Keys: []seal.Key{testKey("b"), testKey("a")}, HashKey: bytes.Repeat([]byte("h"), 32)}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: %+v, want %+v", err, got, want)
	}

	secret := coded("s")
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", "no key"},
		"comments":         {"# a:" + secret + "\n", "no key"},
		"only a hash":      {"hash-keys:" + secret, "no key"},
		"no colon":         {"a:" + secret + "\n" + secret, "line 2"},
		"not base64":       {"a:" + secret[1:], "line 1"},
		"too short":        {"a:" + base64.StdEncoding.EncodeToString([]byte("sss")), "line 1"},
		"base64 of a URL":  {"a:" + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32)), "line 1"},
		"no id":            {":" + secret, "line 1"},
		"two hashes":       {"a:" + secret + "\nhash-keys:" + secret + "\nhash-keys:" + secret, "line 3"},
		"a short hash key": {"a:" + secret + "\nhash-keys:c3Nzcw==", "line 2"},
		"two on a line":    {"a:" + secret + " b:" + secret, "line 1"},
	} {
		_, err := seal.ReadFile(keyFile(t, c.text, 0o600))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "seal.keys") {
			t.Errorf("%s: %v; want an error with %q and the file", name, err, c.want)
		} else if strings.Contains(err.Error(), secret[4:12]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v tells a secret, or takes two lines", name, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing.keys")
	if _, err := seal.ReadFile(missing); err == nil || strings.Count(err.Error(), "missing.keys") != 1 {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := seal.ReadFile(t.TempDir()); err == nil {
		t.Error("a directory is read")
	}
}

// Keys that others may read are no secret.
func TestReadFileOfOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("nothing was tested: the mode of a file says nothing on Windows")
	}
	line := "a:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("a"), 32))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o610} {
		if _, err := seal.ReadFile(keyFile(t, line, mode)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v; want an error that says what to do", mode, err)
		}
	}
}
