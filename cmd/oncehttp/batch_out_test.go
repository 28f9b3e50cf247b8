package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// --out holds what an earlier run of the same batch wrote, or something else, which nobody loses without a word.
func TestOutIsNotOverwritten(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	file := writeFile(t, "in.csv", "id\na\nb\n")
	other := writeFile(t, "other.csv", "id\nc\n")
	out := file + ".ndjson"
	batch := func(file string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.url, "--key", "o:{id}", "--out", out, "--workers", "1"}, more...)
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 2 { // whose operations are forgotten each time
		run(t, batch(file)...).want(t, exitRefused)
		if n := strings.Count(read(), "\n"); n != 2 {
			t.Fatalf("%d lines, want 2", n)
		}
	}
	before, sends := read(), s.sends.Load()
	run(t, batch(other)...).usage(t, "oncehttp: --out "+out+" holds something else than an earlier run of this batch; --append adds to it, --overwrite replaces it")
	if read() != before || s.sends.Load() != sends {
		t.Error("the file changed, or something was sent")
	}
	run(t, batch(other, "--append")...).want(t, exitRefused)
	if got := read(); !strings.HasPrefix(got, before) || strings.Count(got, "\n") != 3 {
		t.Errorf("appended: %q", got)
	}
	run(t, batch(other, "--overwrite")...).want(t, exitRefused)
	if got := read(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "idemp:o:c") {
		t.Errorf("overwritten: %q", got)
	}
	for text, ours := range map[string]bool{"": true, `{"row":1,"ke`: true, "notes of mine\n": false, "{\"row\":9,\"key\":\"x\"}\n": false, "{\"row\":1,\"key\":\"idemp:o:a~2\"}\n": false} {
		writeFile(t, out, text)
		if want := map[bool]int{true: exitRefused, false: exitUsage}[ours]; run(t, batch(file)...).status != want {
			t.Errorf("%q: status is not %d", text, want)
		}
	}
	writeFile(t, out, "torn")
	run(t, batch(file, "--append")...).want(t, exitRefused)
	if got := read(); !strings.HasPrefix(got, "torn\n{") {
		t.Errorf("appended: %q", got)
	}
	run(t, batch(file, "--append", "--overwrite")...).usage(t, "oncehttp: --append and --overwrite: say one")
}
