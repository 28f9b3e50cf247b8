package conformancetest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/conformance/conformancetest"
)

// A subtest speaks of options and not of the command's flags, and each that the suite
// names exists.
func TestOptionsAreNamed(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"it needs a second caller (--as)":                         "it needs a second caller (Options.As)",
		"give --key-header NAME":                                  "give Options.KeyHeader NAME",
		"(--window, --expire-cmd)":                                "(Options.Window, Options.Expire)",
		"--id-pointer, --allow-host":                              "Options.IDPointer, Options.AllowHosts",
		"a time of 10 ms -- and nothing else":                     "a time of 10 ms -- and nothing else",
		"it needs a way to take the store away (--outage-cmd, x)": "it needs a way to take the store away (Options.Outage, x)",
	} {
		if got := conformancetest.WithOptions(flags); got != want {
			t.Errorf("%q: got %q, want %q", flags, got, want)
		}
	}
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the suite's files: %v, %v", files, err)
	}
	flag := regexp.MustCompile(`\(--[a-z-]+|, --[a-z-]+|give --[a-z-]+`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, found := range flag.FindAllString(string(text), -1) {
			name := strings.TrimLeft(conformancetest.WithOptions(found), "(, give")
			if _, known := reflect.TypeFor[conformance.Options]().FieldByName(strings.TrimPrefix(name, "Options.")); !known {
				t.Errorf("%s: %q is %s, which does not exist", file, found, name)
			}
		}
	}
}

// With a second caller every case about callers is judged, as by the command.
func TestSecondCaller(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Header, o.As = http.Header{"Authorization": {"Bearer a"}}, http.Header{"Authorization": {"Bearer b"}}
	o.Quick, o.Run = false, []string{"scope/other-principal-not-answered", "replay/second-caller", "replay/answered", "replay/effects-once"}
	rep := conformancetest.Run(t, layer(t, ""), o)
	if rep.Summary.Pass != 4 {
		t.Errorf("got %+v, want four passes", rep.Summary)
	}
}
