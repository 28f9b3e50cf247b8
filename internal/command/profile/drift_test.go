package profile_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	shown "github.com/oncehttp/oncehttp/internal/command/profile"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// changed returns a built-in profile with a change, for a mock that does otherwise than the profile says.
func changed(t *testing.T, name string, change func(*profile.Profile)) *profile.Profile {
	t.Helper()
	p, ok := profile.ByName(name)
	if !ok {
		t.Fatalf("no profile %s", name)
	}
	change(p)
	return p
}

// sendTo sends one operation by a profile to a mock.
func sendTo(t *testing.T, m *mockserver.Server, name, path, journal, key, data string, more ...string) commandtest.Ran {
	t.Helper()
	args := []string{"send", "POST", m.URL() + path, "--profile", name, "--journal", journal, "--key", key, "-d", data, "--min-delay", "1ms", "--max-delay", "1ms"}
	return commandtest.Run(t, append(args, more...)...)
}

// drifted runs drift on a journal, and returns its findings.
func drifted(t *testing.T, status int, journal string, more ...string) []shown.DriftFinding {
	t.Helper()
	got := commandtest.Run(t, append([]string{"profile", "drift", "--journal", journal, "--json"}, more...)...).Want(t, status)
	var list []shown.DriftFinding
	for line := range strings.Lines(got.Out) {
		var f shown.DriftFinding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, f)
	}
	return list
}

// play is one operation of a run: its key, the faults that it meets, and its content.
type play struct {
	key, data string
	more      []string
	faults    []mockserver.Fault
}

var (
	cutOff  = mockserver.Fault{Kind: mockserver.CutBody}
	lost    = mockserver.Fault{Kind: mockserver.DropAfter}
	well    = mockserver.Fault{}
	forgets = mockserver.Fault{Kind: mockserver.Expire}
)

func answers(status int, body string) mockserver.Fault {
	return mockserver.Fault{Kind: mockserver.Answer, Status: status, Body: body, Header: http.Header{"Content-Type": {"application/json"}}}
}

// driftCase is a mock, its operations, and the findings.
type driftCase struct {
	profile string
	server  mockserver.Config
	plays   []play
	want    string // finding, fact, status, operations and key, each finding
	effects int    // of the key a
}

// driftCases are mocks that do otherwise than the profile says, and those that do not.
func driftCases(t *testing.T) map[string]driftCase {
	t.Helper()
	stripe := func(key string, faults ...mockserver.Fault) play {
		return play{key: key, data: "amount=1", faults: faults}
	}
	const kept = `{"error":{"type":"api_error"}}`
	return map[string]driftCase{
		"as the profile says": {"stripe", mockserver.Config{}, []play{stripe("a", cutOff, well), stripe("b", lost, well), stripe("c")}, "", 1},
		"the mark is gone": {"stripe", mockserver.Config{Profile: changed(t, "stripe", func(p *profile.Profile) { p.Replay = nil })},
			[]play{stripe("a", cutOff, well), stripe("b", cutOff, cutOff, well), stripe("c")}, "replay-gone replay 201 2 a", 1},
		"a repeat after a lost answer proves nothing": {"stripe", mockserver.Config{Profile: changed(t, "stripe", func(p *profile.Profile) { p.Replay = nil })},
			[]play{stripe("a", lost, well)}, "", 1},
		"forgotten, with marks later":   {"stripe", mockserver.Config{}, []play{stripe("a", cutOff, forgets), stripe("b", cutOff, well)}, "answered-anew window 201 1 a", 2},
		"forgotten, with marks earlier": {"stripe", mockserver.Config{}, []play{stripe("b", cutOff, well), stripe("a", cutOff, forgets)}, "replay-gone replay 201 1 a", 1},
		"no longer already done": {"gocardless", mockserver.Config{Bug: "keys-ignored"},
			[]play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{cutOff, well}}}, "answered-anew already_done 201 1 a", 2},
		"already done": {"gocardless", mockserver.Config{}, []play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{cutOff, well}}}, "", 1},
		"a mark that no source names, never seen": {"draft-07", mockserver.Config{Profile: changed(t, "draft-07", func(p *profile.Profile) { p.Replay = nil })},
			[]play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{cutOff, well}}}, "", 1},
		"a mark that no source names, seen before": {"draft-07", mockserver.Config{},
			[]play{{key: "b", data: `{"n":1}`, faults: []mockserver.Fault{cutOff, well}}, {key: "a", data: `{"n":1}`, faults: []mockserver.Fault{cutOff, forgets}}}, "replay-gone replay 201 1 a", 1},
		"423 in progress":        {"draft-07", mockserver.Config{}, []play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{lost, answers(423, `{"e":1}`), well}}}, "in-progress in_progress 423 1 a", 1},
		"409 as the draft says":  {"draft-07", mockserver.Config{}, []play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{lost, answers(409, `{"e":1}`), well}}}, "", 1},
		"425, not acted upon":    {"draft-07", mockserver.Config{}, []play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{lost, answers(425, `{"e":1}`), well}}}, "", 1},
		"409 where 422 is named": {"stripe-v2", mockserver.Config{}, []play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{lost, answers(409, `{"e":1}`), well}}}, "", 1},
		"an error that was kept": {"stripe", mockserver.Config{}, []play{stripe("a", answers(500, kept), well), stripe("b", answers(503, kept), well)}, "kept-error stored.server_error 500 1 a", 1},
		"an error nobody keeps":  {"draft-07", mockserver.Config{}, []play{{key: "a", data: `{"n":1}`, faults: []mockserver.Fault{answers(500, kept), well}}}, "", 1},
	}
}

// TestDrift: real runs of send against the mocks of driftCases.
func TestDrift(t *testing.T) {
	t.Parallel()
	for name, c := range driftCases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal, path := filepath.Join(t.TempDir(), "j.db"), commandtest.EndpointOf(t, c.profile, 0)
			if c.server.Profile == nil {
				c.server.Profile, _ = profile.ByName(c.profile)
			}
			for _, p := range c.plays {
				c.server.Script = append(c.server.Script, p.faults...)
				if len(p.faults) == 0 {
					c.server.Script = append(c.server.Script, well)
				}
			}
			m := commandtest.StartMock(t, c.server)
			for _, p := range c.plays {
				sendTo(t, m, c.profile, path, journal, p.key, p.data, p.more...).Want(t, terminal.ExitOK)
			}
			status := terminal.ExitOK
			if c.want != "" {
				status = terminal.ExitFindings
			}
			var got []string
			for _, f := range drifted(t, status, journal) {
				got = append(got, strings.Join([]string{f.Finding, f.Fact, commandtest.Itoa(f.Status), commandtest.Itoa(f.Operations), f.Key}, " "))
				if f.First.IsZero() || f.Last.Before(f.First) || f.Origin != m.URL() || f.Profile != c.profile || f.Means == "" {
					t.Errorf("%+v", f)
				}
			}
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("found %q, want %q", text, c.want)
			}
			if n := m.Ledger().Effects("a"); c.plays[0].key == "a" && n != c.effects {
				t.Errorf("%d effects, want %d: the server is not the one of this case", n, c.effects)
			}
		})
	}
}

// TestDriftMismatch: two accounts of one journal use one key of the API, with the same credential.
func TestDriftMismatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile, path string
		second        [3]string // credential, path and body
		firstBody     string
		bug           string
		want          string
	}{
		"another request taken":      {"stripe", "/v1/charges", [3]string{"1", "/v1/charges", "n=2"}, "n=1", "keys-ignored", "mismatch-accepted y 1"},
		"of another owner":           {"stripe", "/v1/charges", [3]string{"2", "/v1/charges", "n=2"}, "n=1", "keys-ignored", ""},
		"of nobody known":            {"stripe", "/v1/charges", [3]string{"", "/v1/charges", "n=2"}, "n=1", "keys-ignored", ""},
		"at another path":            {"stripe", "/v1/charges", [3]string{"1", "/v1/refunds", "n=2"}, "n=1", "keys-ignored", ""},
		"the same bytes":             {"stripe", "/v1/charges", [3]string{"1", "/v1/charges", "n=1"}, "n=1", "keys-ignored", ""},
		"no marks, other bytes":      {"resend", "/emails", [3]string{"1", "/emails", `{"n":2}`}, `{"n":1}`, "keys-ignored", ""},
		"answered from the store":    {"stripe", "/v1/charges", [3]string{"1", "/v1/charges", "n=%31"}, "n=1", "", ""},
		"no mismatch in the profile": {"mollie", "/v2/payments", [3]string{"1", "/v2/payments", `{"n":2}`}, `{"n":1}`, "keys-ignored", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := profile.ByName(c.profile)
			m, journal := commandtest.StartMock(t, mockserver.Config{Profile: p, Bug: c.bug}), filepath.Join(t.TempDir(), "j.db")
			for i, r := range [][3]string{{"1", c.path, c.firstBody}, c.second} {
				more := []string{"--account", "xy"[i : i+1]}
				if r[0] != "" {
					more = append(more, "--credential", "sha256:"+strings.Repeat(r[0], 64))
				}
				sendTo(t, m, c.profile, r[1], journal, "a", r[2], more...).Want(t, terminal.ExitOK)
			}
			if sends := m.Ledger().Snapshot().Sends; sends != 2 {
				t.Fatalf("%d sends, want one for each account", sends)
			}
			status, got := terminal.ExitOK, ""
			if c.want != "" {
				status = terminal.ExitFindings
			}
			for _, f := range drifted(t, status, journal) {
				got += strings.Join([]string{f.Finding, f.Account, commandtest.Itoa(f.Operations)}, " ")
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestDriftOlder: a repeat after the profile's window is a note, whether the key was known or not, and nothing is found.
func TestDriftOlder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := changed(t, "stripe", func(p *profile.Profile) { p.Name = "mine" })
	write := func(file string) string {
		text, err := mine.File()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, file)
	}
	long := write("long.json")
	mine.Window.Floor = 1e6 // 1 ms
	short := write("short.json")
	for want, fault := range map[string]mockserver.Fault{"older-known": well, "older-forgotten": forgets} {
		journal := filepath.Join(dir, want+".db")
		m := commandtest.StartMock(t, mockserver.Config{Profile: mine, Window: 1e12, Script: []mockserver.Fault{{Kind: mockserver.CutBody, Delay: 5e6}, fault}})
		sendTo(t, m, long, "/v1/charges", journal, "a", "amount=1").Want(t, terminal.ExitOK)
		list := drifted(t, terminal.ExitOK, journal, "--profile", short)
		if len(list) != 1 || list[0].Finding != want || !list[0].Note || list[0].Within < 0.005 {
			t.Errorf("found %+v, want a note %s", list, want)
		}
		for _, f := range drifted(t, map[string]int{"older-known": terminal.ExitOK, "older-forgotten": terminal.ExitFindings}[want], journal, "--profile", long) {
			if f.Note {
				t.Errorf("a note within the window: %+v", f)
			}
		}
	}
}

// TestDriftSelect: --since, --account and --profile leave operations out, a profile file that is not given is said, and pruned
// operations show nothing.
func TestDriftSelect(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	p := changed(t, "stripe", func(p *profile.Profile) { p.Replay = nil })
	m := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{cutOff, well}})
	sendTo(t, m, "stripe", "/v1/charges", journal, "a", "amount=1", "--account", "x").Want(t, terminal.ExitOK)
	mine := commandtest.WriteProfile(t, "mine")
	sendTo(t, m, mine, "/v1/charges", journal, "b", "amount=1", "-H", "Content-Type: application/x-www-form-urlencoded").Want(t, terminal.ExitOK)
	drift := func(status int, more ...string) commandtest.Ran {
		return commandtest.Run(t, append([]string{"profile", "drift", "--journal", journal}, more...)...).Want(t, status)
	}
	for _, c := range []struct {
		more   []string
		status int
		says   string
	}{
		{nil, terminal.ExitFindings, "1 operation, 1 of them sent more than once: 1 replay-gone; left out, since they have other profiles or those of files: 1 of mine"},
		{[]string{"--since", "1h"}, terminal.ExitFindings, "1 replay-gone"},
		{[]string{"--since", "1ns"}, terminal.ExitOK, "0 operations, 0 of them sent more than once: nothing found"},
		{[]string{"--account", "x"}, terminal.ExitFindings, "1 replay-gone\n"},
		{[]string{"--account", ""}, terminal.ExitOK, "0 operations"},
		{[]string{"--profile", "stripe"}, terminal.ExitFindings, "1 replay-gone"},
		{[]string{"--profile", "adyen"}, terminal.ExitOK, "1 of mine, 1 of stripe"},
		{[]string{"--profile", mine}, terminal.ExitOK, "1 operation, 0 of them sent more than once: nothing found; left out, since they have other profiles or those of files: 1 of stripe"},
	} {
		if got := drift(c.status, c.more...); !strings.Contains(got.Err, c.says) {
			t.Errorf("%v: %s, want %q", c.more, got.Err, c.says)
		}
	}
	if got := drift(terminal.ExitFindings); !strings.Contains(got.Out, "replay-gone        stripe, version v1, at "+m.URL()+": 1 operation, 2") || !strings.Contains(got.Out, "such as a\n") {
		t.Errorf("as text: %s", got.Out)
	}
	commandtest.Run(t, "journal", "prune", "--journal", journal, "--keep-answer", "-1s", "--yes").Want(t, terminal.ExitOK)
	if got := drift(terminal.ExitOK, "--account", "x"); !strings.Contains(got.Err, "nothing found; 1 pruned: their attempts are gone") {
		t.Error(got.Err)
	}
	commandtest.Run(t, "profile", "drift", "--journal", filepath.Join(t.TempDir(), "none.db")).Want(t, terminal.ExitUsage)
	commandtest.Run(t, "profile", "drift", "--journal", journal, "--profile", "strype").Want(t, terminal.ExitUsage)
}

// TestDriftPatch: the patch is a profile that send takes. It holds the answer that was found, and is written once.
func TestDriftPatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	journal, patch := filepath.Join(dir, "j.db"), filepath.Join(dir, "patch.json")
	faults := []mockserver.Fault{lost, answers(423, `{"e":1}`), well}
	m := commandtest.StartMock(t, mockserver.Config{Script: append(faults, faults...)})
	sendTo(t, m, "draft-07", "/payments", journal, "a", `{"n":1}`).Want(t, terminal.ExitOK)
	got := commandtest.Run(t, "profile", "drift", "--journal", journal, "--patch", patch).Want(t, terminal.ExitFindings)
	if want := "patch: " + patch + ": profile draft-07-tightened: unclear: "; !strings.Contains(got.Err, want) {
		t.Errorf("%s, want %q", got.Err, want)
	}
	commandtest.Run(t, "profile", "show", patch).Want(t, terminal.ExitOK)
	sendTo(t, m, patch, "/payments", filepath.Join(dir, "other.db"), "b", `{"n":1}`).Want(t, terminal.ExitUnknown)
	if snapshot := m.Ledger().Snapshot(); snapshot.Keys["b"].Sends != 2 {
		t.Errorf("%d sends by the patch, want a second one that is held", snapshot.Keys["b"].Sends)
	}
	for file, want := range map[string]string{patch: "exists", journal: "j.db"} {
		if got := commandtest.Run(t, "profile", "drift", "--journal", journal, "--patch", file); got.Status != terminal.ExitUsage || !strings.Contains(got.Err, want) {
			t.Errorf("%s: status %d, %s", file, got.Status, got.Err)
		}
	}
	empty := filepath.Join(dir, "empty.json")
	if got := commandtest.Run(t, "profile", "drift", "--journal", journal, "--profile", "stripe", "--patch", empty).Want(t, terminal.ExitOK); !strings.Contains(got.Err, "no patch: nothing found") {
		t.Error(got.Err)
	}
	if _, err := os.Stat(empty); err == nil {
		t.Error("an empty patch was written")
	}
}
