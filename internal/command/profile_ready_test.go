package command_test

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

var everyProfile = flag.Bool("all", false, "TestReadyProfilesCheck checks the mock of every ready profile, in half a minute")

// readyProfiles returns the profiles that are ready, and have a key.
func readyProfiles() []*profile.Profile {
	var all []*profile.Profile
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		if state := p.State(); p.Carrier.Place != profile.Nowhere && (state == profile.StateReady || state == profile.StateComplete) {
			all = append(all, p)
		}
	}
	return all
}

// carrying returns a JSON body, and the flags for it, of a profile: with {key} where the key travels in the body.
func carrying(p *profile.Profile) []string {
	member, deep := strings.CutPrefix(p.Carrier.Name, "/")
	if p.Carrier.Place != profile.Body || !deep {
		return nil
	}
	return []string{"--body", `{"reference":"{ref}","amount":100,"` + member + `":"{key}"}`}
}

// The quick check of the mock that plays a ready profile finds no fault and has no warning: the two read the facts alike, and do the same
// where there is none. Three of the profiles have carriers of several kinds; with -args -all it is every one.
func TestReadyProfilesCheck(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range readyProfiles() {
		if !*everyProfile && !slices.Contains([]string{"azure-repeatability", "circle", "gocardless"}, p.Name) {
			continue
		}
		checked++
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			m := commandtest.StartMock(t, mockserver.Config{Profile: p})
			url := m.URL()
			args := append([]string{"check", url + commandtest.EndpointOf(t, p.Name, 0), "--profile", p.Name, "--quick", "--witness", url + "/_effects?ref={ref}#/count",
				"--delay-query", "sleep={ms}", "--fail-query", "fail={status}"}, carrying(p)...)
			var got commandtest.Ran
			for seed := range 3 { // a race that was lost on a busy machine is no verdict
				if got = commandtest.Run(t, append(args, "--seed", commandtest.Itoa(7+seed))...); got.Status != report.ExitUndecided {
					break
				}
			}
			passed := strings.Count(got.Out, "\n  pass ")
			if got.Status != terminal.ExitOK || passed < 20 || strings.Contains(got.Out, "\n  warn ") {
				t.Errorf("status %d, %d cases passed:\n%s%s", got.Status, passed, got.Out, got.Err)
			}
		})
	}
	if checked < 3 {
		t.Errorf("%d profiles checked", checked)
	}
}

// shapeOf returns the flags that make a key which the profile takes of any key.
func shapeOf(p *profile.Profile) []string {
	switch k := p.Key; {
	case k.Format == profile.UUIDv4:
		return []string{"--key-uuid4"}
	case k.Format == profile.UUID:
		return []string{"--key-uuid"}
	case k.Alphabet != "" || k.MaxBytes > 0 && k.MaxBytes < 40:
		return []string{"--key-short", "26"}
	}
	return nil
}

// elsewhere returns a method and a path at which the profile says that no key counts; "" if there is none.
func elsewhere(p *profile.Profile) (method, path string) {
	if len(p.Endpoints) > 0 {
		return "POST", "/elsewhere/7"
	}
	for _, m := range []string{"PATCH", "PUT", "DELETE"} {
		if !slices.Contains(p.Methods, m) {
			return m, "/payments"
		}
	}
	return "", ""
}

// By the name of each ready profile, the mock starts.
func TestReadyProfilesMock(t *testing.T) {
	t.Parallel()
	for _, p := range readyProfiles() {
		commandtest.StartCommand(t, "--profile", p.Name, "--addr", "127.0.0.1:0").Stop().Want(t, terminal.ExitOK)
	}
}

// By the name of each ready profile, batch and send take effect once for each operation at an endpoint of the API, through a lost answer.
// Elsewhere a request with a lost answer is sent once, and held.
func TestReadyProfilesSending(t *testing.T) {
	t.Parallel()
	partial, _ := profile.ByName("alpaca") // whose endpoints are stated, too
	for _, p := range testrun.Some(append(readyProfiles(), partial), 6) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			batchReady(t, p)
			sendReady(t, p)
		})
	}
}

// sendingFlags are those of batch and send for a profile.
func sendingFlags(p *profile.Profile) []string {
	flags := append([]string{"--profile", p.Name, "--min-delay", "1ms", "--max-delay", "1ms"}, shapeOf(p)...)
	if p.Carrier.Place != profile.Header {
		flags = append(flags, "--insert-key")
	}
	return flags
}

// losing returns a script in which the answer to a send after so many is lost; none if the API asks for a long pause before the next.
func losing(p *profile.Profile, after int) []mockserver.Fault {
	if p.MinDelay > 0 {
		return nil
	}
	return append(make([]mockserver.Fault, after), mockserver.Fault{Kind: mockserver.DropAfter})
}

func batchReady(t *testing.T, p *profile.Profile) {
	t.Helper()
	const rows = 3
	file := commandtest.WriteFile(t, "in.csv", "id,amount\ncustomer-1-order-1,1\ncustomer-1-order-2,1\ncustomer-2-order-1,1\n")
	batch := func(m *mockserver.Server, method, path, journal string) commandtest.Ran {
		args := []string{"batch", file, "--url", m.URL() + path, "--method", method, "--workers", "1", "--key", "order:{id}", "--journal", filepath.Join(t.TempDir(), journal)}
		return commandtest.Run(t, append(args, sendingFlags(p)...)...)
	}
	m := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: losing(p, 1)})
	for _, l := range batch(m, "POST", commandtest.EndpointOf(t, p.Name, 0), "own.db").Want(t, terminal.ExitOK).Lines(t) {
		if repeated := l.Sends > 1 && len(p.AlreadyDone) > 0; l.Result != results.Done && !(repeated && l.Result == results.Duplicate) {
			t.Errorf("row %d: %s", l.Row, l.Result)
		}
	}
	want := rows
	if p.MinDelay == 0 {
		want++ // the lost one
	}
	if s := m.Ledger().Snapshot(); s.Effects != rows || s.Sends != want || len(s.Keys) != rows {
		t.Errorf("batch: %d effects of %d keys by %d sends, want %d each by %d", s.Effects, len(s.Keys), s.Sends, rows, want)
	}

	method, path := elsewhere(p)
	if method == "" {
		return // every method of the mock counts
	}
	lost := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: slices.Repeat([]mockserver.Fault{{Kind: mockserver.DropAfter}}, rows)})
	for _, l := range batch(lost, method, path, "other.db").Want(t, terminal.ExitUnknown).Lines(t) {
		if l.Result != results.Held || l.Sends != 1 {
			t.Errorf("elsewhere, row %d: %s after %d sends, want it held after one", l.Row, l.Result, l.Sends)
		}
	}
	if n := lost.Ledger().Snapshot().Sends; n != rows {
		t.Errorf("batch elsewhere: %d sends, want one for each row", n)
	}
}

func sendReady(t *testing.T, p *profile.Profile) {
	t.Helper()
	data, kind := `{"amount":100}`, "application/json"
	if p.Body.Default() == profile.FormBody {
		data, kind = "amount=100", input.TypeForm
	}
	send := func(m *mockserver.Server, method, path string) commandtest.Ran {
		args := []string{"send", method, m.URL() + path, "-d", data, "-H", "Content-Type: " + kind, "--key", "order-1-of-customer-1-in-2026", "--journal", filepath.Join(t.TempDir(), "send.db")}
		return commandtest.Run(t, append(args, sendingFlags(p)...)...)
	}
	m := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: losing(p, 0)})
	send(m, "POST", commandtest.EndpointOf(t, p.Name, 0)).Want(t, terminal.ExitOK)
	if s := m.Ledger().Snapshot(); s.Effects != 1 || len(s.Keys) != 1 {
		t.Errorf("send: %+v, want one effect of one key", s)
	}
	if method, path := elsewhere(p); method != "" {
		lost := commandtest.StartMock(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
		send(lost, method, path).Want(t, terminal.ExitUnknown)
		if n := lost.Ledger().Snapshot().Sends; n != 1 {
			t.Errorf("send elsewhere: %d sends, want one", n)
		}
	}
}
