package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// skeleton is what profile new prints.
func skeleton(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, append([]string{"profile", "new"}, args...)...).want(t, exitOK).out
}

// wantErr fails the test unless the one line on stderr holds the text.
func (r ran) wantErr(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(r.err, text) || strings.Count(r.err, "\n") != 1 {
		t.Errorf("stderr %q, want one line with %q", r.err, text)
	}
}

// What the skeleton holds until something is known.
const (
	startSource  = `"start": {"ref": "nothing is known yet", "date": "2026-11", "confidence": "assumed"}`
	startCarrier = `{"value": {"place": "none"}, "source": "start"}`
)

// writeProfile writes a profile file under that name, with a carrier of its own, and returns its path.
func writeProfile(t *testing.T, name string) string {
	t.Helper()
	text := strings.Replace(skeleton(t, name), startSource, `"us": {"ref": "tried", "date": "2026-11", "confidence": "primary"}`, 1)
	text = strings.Replace(text, `"carrier": `+startCarrier, `"carrier": {"value": {"place": "header", "name": "X-Our-Key"}, "source": "us"}`, 1)
	text = strings.Replace(text, `"methods": null`, `"methods": {"value": ["POST"], "source": "us"}`, 1)
	path := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProfileNew: the skeleton is a profile as it is, names every fact, and each of its examples can be put in.
func TestProfileNew(t *testing.T) {
	t.Parallel()
	text := skeleton(t, "acme-pay")
	p, err := profile.Load(strings.NewReader(text))
	if err != nil || p.Name != "acme-pay" || p.Complete() {
		t.Fatalf("%+v, %v", p, err)
	}
	filled := strings.Replace(text, startSource, `"docs": {"ref": "https://example.com", "date": "2026-11-30", "confidence": "excerpt"}`, 1)
	filled = strings.Replace(filled, startCarrier, "null", 1)
	for _, s := range p.Statements() {
		example := regexp.MustCompile(`(?m)^  "\$comment": \["[^\n]*", (\{"value": [^\n]*"source": "docs"\})\],\n  "` + s.Name + `": null`).FindStringSubmatch(strings.Replace(text, startCarrier, "null", 1))
		if example == nil {
			t.Errorf("%s is not in the skeleton, or has no example", s.Name)
			continue
		}
		filled = strings.Replace(filled, `"`+s.Name+`": null`, `"`+s.Name+`": `+example[1], 1)
	}
	p, err = profile.Load(strings.NewReader(filled))
	if err != nil {
		t.Fatalf("the examples: %v", err)
	}
	for _, s := range p.Statements() {
		if s.Value == "" || s.Use != "" {
			t.Errorf("%s: the example is not taken: %+v", s.Name, s)
		}
	}
	if !p.Complete() {
		t.Errorf("with all examples it lacks %v", p.Unknown())
	}
	for name, want := range map[string]string{"Bad Name": "want lower-case letters", "stripe": "that of a built-in profile"} {
		run(t, "profile", "new", name).want(t, exitUsage).wantErr(t, want)
	}
}

// TestProfileShow: every fact, those that are unknown said as such; as text and as JSON; of a file, too.
func TestProfileShow(t *testing.T) {
	t.Parallel()
	text := run(t, "profile", "show", "gocardless").want(t, exitOK).out
	for _, want := range []string{
		"GoCardless Pro API\n", "not known: window, in_progress, stored.server_error\n", "\ncarrier            header Idempotency-Key\n", "\nin progress        unknown\n",
		"excerpt, 2026-11: https://gocardless.com/blog/idempotency-keys\n", "1h, a cap that nobody promised\n", "assumed, 2026-11: not published\n",
		"assumed: window: a key counts for 1h after the first send,",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	var v profileView
	if err := json.Unmarshal([]byte(run(t, "profile", "show", "stripe", "--json").want(t, exitOK).out), &v); err != nil {
		t.Fatal(err)
	}
	if v.Name != "stripe" || !v.Complete || len(v.Unknown) != 0 {
		t.Errorf("%+v", v)
	}
	for _, f := range v.Facts {
		unknown := f.Name == "cancel" || f.Name == "endpoints" || f.Name == "verdicts" || f.Name == "token" || f.Name == "own" || f.Name == "first_sent" || f.Name == "unclear" || f.Name == "already_done" || f.Name == "duplicate" || f.Name == "reference" || f.Name == "poisoned" || f.Name == "business_conflict" || f.Name == "min_delay" || f.Name == "lookup"
		if (string(f.Value) == "null") != unknown || (f.Source == nil) != unknown {
			t.Errorf("%s: %s from %+v", f.Name, f.Value, f.Source)
		}
	}
	if out := run(t, "profile", "show", "none").want(t, exitOK).out; !strings.Contains(out, "none, version 1: it takes no key\n") {
		t.Error(out)
	}
	path := writeProfile(t, "mine")
	if out := run(t, "profile", "show", path).want(t, exitOK).out; !strings.Contains(out, "header X-Our-Key") {
		t.Error(out)
	}
	run(t, "profile", "show", "strype").want(t, exitUsage).wantErr(t, `"strype" is not known; see oncehttp profile list`)
	run(t, "profile", "show", "./strype.json").want(t, exitUsage).wantErr(t, "./strype.json: no such file")
	run(t, "profile", "show").want(t, exitUsage).wantErr(t, "is missing")
}

// TestProfileShowSources: the words of the sources are shown where they are asked for, what is assumed is said, and an old
// source is marked, also in the list.
func TestProfileShowSources(t *testing.T) {
	t.Parallel()
	old := `{"name": "mine", "version": "1", "sources": {"docs": {"ref": "https://example.com/keys", "date": "2021-03", "confidence": "primary"}},
		"carrier": {"value": {"place": "header", "name": "X-Our-Key"}, "source": "docs", "said": "send X-Our-Key"}}`
	path := filepath.Join(t.TempDir(), "mine.json")
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, words := run(t, "profile", "show", path).want(t, exitOK).out, run(t, "profile", "show", path, "--sources").want(t, exitOK).out
	const source, said = "primary, 2021-03 (old): https://example.com/keys\n", "  says: send X-Our-Key\n"
	if !strings.Contains(plain, source) || strings.Contains(plain, "says:") || !strings.Contains(words, source+strings.Repeat(" ", 17)+said) {
		t.Errorf("without --sources:\n%s\nwith:\n%s", plain, words)
	}
	var v profileView
	if err := json.Unmarshal([]byte(run(t, "profile", "show", path, "--json").want(t, exitOK).out), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Old) != 1 || v.Old[0] != "carrier" || len(v.Assumed) == 0 || v.Facts[0].Source.Said != "send X-Our-Key" {
		t.Errorf("as JSON: %+v", v)
	}
	if text := run(t, "profile", "show", "draft-07").want(t, exitOK).out; !strings.Contains(text, "assumed: window: a key counts for 24h after the first send") {
		t.Errorf("the window of the default profile is not said to be assumed:\n%s", text)
	}
	if table := run(t, "profile", "list").want(t, exitOK).out; !regexp.MustCompile(`(?m)^paypal-orders .* 2024-02-03 old `).MatchString(table) || !regexp.MustCompile(`(?m)^none .* - +- +-$`).MatchString(table) {
		t.Errorf("the list does not mark old sources:\n%s", table)
	}
}

// TestProfileList: every name once, in the table and as JSON.
func TestProfileList(t *testing.T) {
	t.Parallel()
	table := run(t, "profile", "list").want(t, exitOK).out
	if lines := strings.Split(strings.TrimSpace(table), "\n"); len(lines) != len(profile.Names())+1 {
		t.Errorf("%d lines for %d profiles", len(lines), len(profile.Names()))
	}
	var views []profileView
	if err := json.Unmarshal([]byte(run(t, "profile", "list", "--json").want(t, exitOK).out), &views); err != nil {
		t.Fatal(err)
	}
	for i, name := range profile.Names() {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` `).MatchString(table) {
			t.Errorf("%s is not in the table", name)
		}
		if i >= len(views) || views[i].Name != name || views[i].Complete != (len(views[i].Unknown) == 0 && name != "none") {
			t.Errorf("%s is not in the JSON at %d", name, i)
		}
	}
}

// TestProfileFileBuiltInName: a file must not call itself as a built-in profile does, unless it says the same.
func TestProfileFileBuiltInName(t *testing.T) {
	t.Parallel()
	same, err := os.ReadFile("../../profile/data/stripe.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mine.json")
	for text, want := range map[string]string{
		string(same): "",
		strings.Replace(string(same), `"floor": "24h"`, `"floor": "23h"`, 1):   `mine.json: name: "stripe" is that of a built-in profile that says otherwise`,
		strings.Replace(string(same), `"version": "v1"`, `"version": "v9"`, 1): `mine.json: name: "stripe" is that of a built-in profile that says otherwise`,
		strings.Replace(string(same), `"raw"`, `"cooked"`, 1):                  `mine.json: encoding: "cooked", want raw or sf-string`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"profile", "show", path}, {"mock", "--profile", path, "--faults", "nonsense"}, {"check", "http://127.0.0.1:1", "--profile", path, "--run", "nothing/*"},
			{"send", "POST", "http://127.0.0.1:1/x", "--profile", path, "--max-attempts", "0"}, {"batch", "/nowhere.csv", "--url", "http://127.0.0.1:1/x", "--profile", path},
			{"journal", "resume", "--journal", "/nowhere.db", "--profile", path},
		} {
			if got := run(t, args...); strings.Contains(got.err, "mine.json") != (want != "") || !strings.Contains(got.err, want) {
				t.Errorf("%v: %s, want %q", args, got.err, want)
			}
		}
	}
}

// TestMockUnknown: the mock does not invent how an API answers, unless it is told to.
func TestMockUnknown(t *testing.T) {
	t.Parallel()
	path := writeProfile(t, "mine")
	run(t, "mock", "--profile", path).want(t, exitUsage).wantErr(t, "--profile mine: not known of this API: in_progress, mismatch; --assume plays what is common instead")
	run(t, "mock", "--profile", "gocardless").want(t, exitUsage).wantErr(t, "--profile gocardless: not known of this API: in_progress; --assume")
	run(t, "mock", "--profile", "none", "--assume").want(t, exitUsage).wantErr(t, "--profile none: it sends no key that the mock could honour; with --already-done")
	for _, args := range [][]string{{}, {"--profile", "stripe"}, {"--profile", path, "--assume"}} {
		f := &mockFlags{addr: "127.0.0.1:0", profile: "draft-07"}
		if len(args) > 1 {
			f.profile, f.assume = args[1], len(args) > 2
		}
		if _, _, err := f.config(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestProfileFileResume: what was begun with a profile file is sent by that file again, and not at all without it.
func TestProfileFileResume(t *testing.T) {
	t.Parallel()
	for name, header := range map[string][]string{"its own header": nil, "--key-header": {"--key-header", "X-Other-Key"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fileResume(t, header)
		})
	}
}

func fileResume(t *testing.T, keyHeader []string) {
	t.Helper()
	var sends atomic.Int32
	keys := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("X-Our-Key") + r.Header.Get("X-Other-Key") + r.Header.Get("Idempotency-Key")
		if sends.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer s.Close()
	path := writeProfile(t, "mine")
	dir := filepath.Dir(path)
	journal := filepath.Join(dir, "j.db")
	if err := os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := []string{"batch", filepath.Join(dir, "in.csv"), "--url", s.URL, "--key", "order:{id}", "--journal", journal, "--max-attempts", "1", "--min-delay", "1ms", "--max-delay", "1ms"}
	batch = append(batch, keyHeader...)
	run(t, append(batch, "--profile", path)...).want(t, exitUnknown)
	if shown := run(t, "journal", "show", "idemp:order:7", "--journal", journal, "--json").want(t, exitOK).out; !strings.Contains(shown, `"profile":"mine`) && !strings.Contains(shown, `"profile": "mine`) {
		t.Errorf("the record does not name the profile: %s", shown)
	}
	resume := []string{"journal", "resume", "--journal", journal}
	for _, args := range [][]string{batch, resume} {
		if got := run(t, args...).want(t, exitUnknown); !strings.Contains(got.out, `profile \"mine\" version`) && !strings.Contains(got.out, `the profile file of \"mine\"; give both again`) {
			t.Errorf("%v does not say what is missing: %s%s", args, got.out, got.err)
		}
	}
	if n := sends.Load(); n != 1 {
		t.Fatalf("%d sends without the file, want none after the first", n)
	}
	run(t, append(resume, "--profile", path)...).want(t, exitOK)
	if first, second := <-keys, <-keys; first != "idemp:order:7" || second != first {
		t.Errorf("keys %q and %q", first, second)
	}
}
