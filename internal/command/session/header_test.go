package session_test

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "auth.txt")
	text := "# of the test shop\n\nAuthorization: Bearer abc\r\nX-Two: 2\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := session.ParseHeaders([]string{"x-one:1", "@" + file, "X-One: uno "})
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{"X-One": {"1", "uno"}, "Authorization": {"Bearer abc"}, "X-Two": {"2"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHeaderErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.txt")
	if err := os.WriteFile(file, []byte("A: b\nsecret-without-colon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.txt")
	if err := os.WriteFile(large, make([]byte, terminal.HeaderFileBytesMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ arg, want string }{
		{"secret", `--header number 1: want "Name: value"`},
		{"a b: secret", "--header number 1: the name before the colon is not that of a header"},
		{": secret", "--header number 1: the name before the colon is not that of a header"},
		{"A: sec\nret", "--header number 1: the value of A holds a control character"},
		{"Content-Length: 7", "--header number 1: Content-Length is of the connection and cannot be chosen"},
		{"@" + file, "--header number 1: " + file + `: line 2: want "Name: value"`},
		{"@" + dir + "/none", "--header number 1: " + dir + "/none: no such file or directory"},
		{"@" + large, "--header number 1: " + large + ": is too long: more than 1048576 bytes"},
	}
	for _, tt := range tests {
		_, err := session.ParseHeaders([]string{tt.arg})
		switch {
		case err == nil || err.Error() != tt.want:
			t.Errorf("%q: error %v, want %s", tt.arg, err, tt.want)
		case strings.Contains(err.Error(), "ret"):
			t.Errorf("%q: the error %q shows a value", tt.arg, err)
		}
	}
}
