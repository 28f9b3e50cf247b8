package mockserver_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/mockserver"
)

// What two requests differ in is bounded, whatever they hold.
func TestDifferencesAreBounded(t *testing.T) {
	t.Parallel()
	name := func(c string) string { return strings.Repeat(c, 1000) }
	var members []string
	for c := range 60 {
		members = append(members, `"`+name(string(rune('A'+c%26)))+string(rune('a'+c%26))+`":1`)
	}
	r := httptest.NewRequest("POST", "/payments", nil)
	got := mockserver.DifferencesForTest(r, r, []byte(`{`+strings.Join(members, ",")+`}`), []byte(`{}`))
	if len(got) > 1000 || !strings.Contains(got, "more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	long := strings.Repeat("x", 70_000)
	for second, want := range map[string]string{
		long + "y":      "70000 and 70001 bytes, no difference in the first 65536",
		long[1:] + "y":  "body (behind its first 65536 bytes)",
		"y" + long[1:]:  "70000 and 70000 bytes, the first difference at offset 0",
		long[:10] + "y": "70000 and 11 bytes, the first difference at offset 10",
	} {
		if got := mockserver.DifferencesForTest(r, r, []byte(long), []byte(second)); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzDifferences(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"x"}]}`), []byte(`{"a":[1,{"b":"y"}],"c":null}`))
	f.Add([]byte(`[]`), []byte(`{`))
	f.Add([]byte("\xff"), []byte(""))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := httptest.NewRequest("POST", "/payments", nil)
		got := mockserver.DifferencesForTest(r, r, first, second)
		if got == "" || len(got) > 2000 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("%q and %q: got %q", first, second, got)
		}
	})
}
