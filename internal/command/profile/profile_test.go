package profile_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	shown "github.com/oncehttp/oncehttp/internal/command/profile"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/profile"
)

// TestProfileNew: the skeleton is a profile as it is, names every fact, and each of its examples can be put in.
func TestProfileNew(t *testing.T) {
	t.Parallel()
	text := commandtest.Skeleton(t, "acme-pay")
	p, err := profile.Load(strings.NewReader(text))
	if err != nil || p.Name != "acme-pay" || p.Complete() {
		t.Fatalf("%+v, %v", p, err)
	}
	filled := strings.Replace(text, commandtest.StartSource, `"docs": {"ref": "https://example.com", "date": "2026-11-30", "confidence": "excerpt"}`, 1)
	filled = strings.Replace(filled, commandtest.StartCarrier, "null", 1)
	for _, s := range p.Statements() {
		example := regexp.MustCompile(`(?m)^  "\$comment": \["[^\n]*", (\{"value": [^\n]*"source": "docs"\})\],\n  "` + s.Name + `": null`).FindStringSubmatch(strings.Replace(text, commandtest.StartCarrier, "null", 1))
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
		commandtest.Run(t, "profile", "new", name).Want(t, terminal.ExitUsage).WantErr(t, want)
	}
}

// TestProfileShow: every fact, those that are unknown said as such; as text and as JSON; of a file, too.
func TestProfileShow(t *testing.T) {
	t.Parallel()
	text := commandtest.Run(t, "profile", "show", "gocardless").Want(t, terminal.ExitOK).Out
	for _, want := range []string{
		"GoCardless Pro API\n", "ready; not known: window, in_progress, stored.server_error\n", "\ncarrier            header Idempotency-Key\n", "\nin progress        unknown\n",
		"excerpt, 2026-11: https://gocardless.com/blog/idempotency-keys\n", "1h, a cap that nobody promised\n", "assumed, 2026-11: not published\n",
		"assumed: window: a key counts for 1h after the first send,",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	var v shown.View
	if err := json.Unmarshal([]byte(commandtest.Run(t, "profile", "show", "stripe", "--json").Want(t, terminal.ExitOK).Out), &v); err != nil {
		t.Fatal(err)
	}
	if v.Name != "stripe" || !v.Complete || v.State != profile.StateComplete || len(v.Unknown) != 0 {
		t.Errorf("%+v", v)
	}
	for _, f := range v.Facts {
		unknown := f.Name == "cancel" || f.Name == "endpoints" || f.Name == "verdicts" || f.Name == "token" || f.Name == "own" || f.Name == "first_sent" || f.Name == "unclear" || f.Name == "already_done" || f.Name == "duplicate" || f.Name == "reference" || f.Name == "poisoned" || f.Name == "business_conflict" || f.Name == "min_delay" || f.Name == "lookup"
		if (string(f.Value) == "null") != unknown || (f.Source == nil) != unknown {
			t.Errorf("%s: %s from %+v", f.Name, f.Value, f.Source)
		}
	}
	if out := commandtest.Run(t, "profile", "show", "none").Want(t, terminal.ExitOK).Out; !strings.Contains(out, "none, version 1: it takes no key\n") {
		t.Error(out)
	}
	path := commandtest.WriteProfile(t, "mine")
	if out := commandtest.Run(t, "profile", "show", path).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "header X-Our-Key") {
		t.Error(out)
	}
	commandtest.Run(t, "profile", "show", "strype").Want(t, terminal.ExitUsage).WantErr(t, `"strype" is not known; see oncehttp profile list`)
	commandtest.Run(t, "profile", "show", "./strype.json").Want(t, terminal.ExitUsage).WantErr(t, "./strype.json: no such file")
	commandtest.Run(t, "profile", "show").Want(t, terminal.ExitUsage).WantErr(t, "is missing")
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
	plain, words := commandtest.Run(t, "profile", "show", path).Want(t, terminal.ExitOK).Out, commandtest.Run(t, "profile", "show", path, "--sources").Want(t, terminal.ExitOK).Out
	const source, said = "primary, 2021-03 (old): https://example.com/keys\n", "  says: send X-Our-Key\n"
	if !strings.Contains(plain, source) || strings.Contains(plain, "says:") || !strings.Contains(words, source+strings.Repeat(" ", 17)+said) {
		t.Errorf("without --sources:\n%s\nwith:\n%s", plain, words)
	}
	var v shown.View
	if err := json.Unmarshal([]byte(commandtest.Run(t, "profile", "show", path, "--json").Want(t, terminal.ExitOK).Out), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Old) != 1 || v.Old[0] != "carrier" || len(v.Assumed) == 0 || v.Facts[0].Source.Said != "send X-Our-Key" {
		t.Errorf("as JSON: %+v", v)
	}
	if text := commandtest.Run(t, "profile", "show", "draft-07").Want(t, terminal.ExitOK).Out; !strings.Contains(text, "assumed: window: a key counts for 24h after the first send") {
		t.Errorf("the window of the default profile is not said to be assumed:\n%s", text)
	}
	if table := commandtest.Run(t, "profile", "list").Want(t, terminal.ExitOK).Out; !regexp.MustCompile(`(?m)^paypal-orders .* 2024-02-03 old `).MatchString(table) || !regexp.MustCompile(`(?m)^none +ready .* - +- +-$`).MatchString(table) {
		t.Errorf("the list does not mark old sources:\n%s", table)
	}
}

// TestProfileList: every name once, in the table and as JSON.
func TestProfileList(t *testing.T) {
	t.Parallel()
	table := commandtest.Run(t, "profile", "list").Want(t, terminal.ExitOK).Out
	if lines := strings.Split(strings.TrimSpace(table), "\n"); len(lines) != len(profile.Names())+1 {
		t.Errorf("%d lines for %d profiles", len(lines), len(profile.Names()))
	}
	var views []shown.View
	if err := json.Unmarshal([]byte(commandtest.Run(t, "profile", "list", "--json").Want(t, terminal.ExitOK).Out), &views); err != nil {
		t.Fatal(err)
	}
	for i, name := range profile.Names() {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` `).MatchString(table) {
			t.Errorf("%s is not in the table", name)
		}
		if i >= len(views) || views[i].Name != name || views[i].Complete != (len(views[i].Unknown) == 0 && name != "none") || views[i].Complete != (views[i].State == profile.StateComplete) {
			t.Errorf("%s is not in the JSON at %d", name, i)
		}
	}
}

// TestProfileFileBuiltInName: a file must not call itself as a built-in profile does, unless it says the same.
func TestProfileFileBuiltInName(t *testing.T) {
	t.Parallel()
	same, err := os.ReadFile("../../../profile/data/stripe.json")
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
			if got := commandtest.Run(t, args...); strings.Contains(got.Err, "mine.json") != (want != "") || !strings.Contains(got.Err, want) {
				t.Errorf("%v: %s, want %q", args, got.Err, want)
			}
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
	path := commandtest.WriteProfile(t, "mine")
	dir := filepath.Dir(path)
	journal := filepath.Join(dir, "j.db")
	if err := os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := []string{"batch", filepath.Join(dir, "in.csv"), "--url", s.URL, "--key", "order:{id}", "--journal", journal, "--max-attempts", "1", "--min-delay", "1ms", "--max-delay", "1ms"}
	batch = append(batch, keyHeader...)
	commandtest.Run(t, append(batch, "--profile", path)...).Want(t, terminal.ExitUnknown)
	if shown := commandtest.Run(t, "journal", "show", "idemp:order:7", "--journal", journal, "--json").Want(t, terminal.ExitOK).Out; !strings.Contains(shown, `"profile":"mine`) && !strings.Contains(shown, `"profile": "mine`) {
		t.Errorf("the record does not name the profile: %s", shown)
	}
	resume := []string{"journal", "resume", "--journal", journal}
	for _, args := range [][]string{append(slices.Clone(batch), "--profile", "draft-07"), resume} {
		if got := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown); !strings.Contains(got.Out, `profile \"mine\" version`) && !strings.Contains(got.Out, `the profile file of \"mine\"; give both again`) {
			t.Errorf("%v does not say what is missing: %s%s", args, got.Out, got.Err)
		}
	}
	if n := sends.Load(); n != 1 {
		t.Fatalf("%d sends without the file, want none after the first", n)
	}
	commandtest.Run(t, append(resume, "--profile", path)...).Want(t, terminal.ExitOK)
	if first, second := <-keys, <-keys; first != "idemp:order:7" || second != first {
		t.Errorf("keys %q and %q", first, second)
	}
}
