package batch_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/persist"
)

// standingRows runs a batch of the ids 1 (done), 2 (pending), 3 (held), 4 (declined) and 5 (done), of 10.00 each.
func standingRows(t *testing.T) (file string, args []string, s *commandtest.Counted) {
	t.Helper()
	s = commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch b, _ := io.ReadAll(r.Body); {
		case strings.Contains(string(b), `"2"`):
			panic(http.ErrAbortHandler)
		case strings.Contains(string(b), `"3"`):
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case strings.Contains(string(b), `"4"`):
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, `{"code":"declined"}`)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	file = commandtest.WriteFile(t, "in.csv", "id,amount,note\n1,10.00,a\n2,10.00,b\n3,10.00,c\n4,10.00,d\n5,10.00,e\n")
	args = commandtest.Fast("batch", file, "--url", s.URL+"/pay", "--key", "o:{id}", "--workers", "1", "--max-attempts", "1", "--sum", "amount")
	commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	return file, args, s
}

// --dry-run says how each row stands in the journal and what would be sent, changes nothing, and sends nothing.
func TestDryRunUsesTheJournal(t *testing.T) {
	t.Parallel()
	file, args, s := standingRows(t)
	commandtest.WriteFile(t, file, "id,amount,note\n1,10.00,a\n2,10.00,b\n3,10.00,c\n4,10.00,d\n5,10.01,x\n6,1.00,f\n6,1.00,f\n")
	before, sends := commandtest.Tree(t, strings.TrimSuffix(file, "/in.csv")), s.Sends.Load()
	got := commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitRefused)
	journal := file + ".oncehttp.db"
	want := strings.Join([]string{
		file + `: row 5 (line 6): the key "idemp:o:5" is confirmed with other content: amount, note`,
		file + ": 7 rows: 1 new, 1 changed, 1 done, 1 duplicate, 1 declined, 1 held, 1 pending; 2 would be sent; nothing was sent",
		"total amount: 52.01 in 7 rows = 1.00 in 1 new + 10.01 in 1 changed + 10.00 in 1 done + 1.00 in 1 duplicate + 10.00 in 1 declined + 10.00 in 1 held + 10.00 in 1 pending",
		"held or pending: oncehttp journal stuck --journal " + journal,
	}, "\n") + "\n"
	if got.Err != want {
		t.Errorf("stderr\n%swant\n%s", got.Err, want)
	}
	if !strings.HasPrefix(got.Out, `{"row":2,`) || !strings.Contains(got.Out, "\n"+`{"row":6,`) || strings.Count(got.Out, "\n") != 2 {
		t.Errorf("stdout\n%s", got.Out)
	}
	if after := commandtest.Tree(t, strings.TrimSuffix(file, "/in.csv")); len(before) != len(after) || s.Sends.Load() != sends {
		t.Errorf("%d files, were %d; %d sends", len(after), len(before), s.Sends.Load()-sends)
	}
	// The second generation sees the changed row, too, by the record of the first.
	got = commandtest.Run(t, append(args, "--dry-run", "--generation", "2")...).Want(t, terminal.ExitRefused)
	if !strings.Contains(got.Err, `row 5 (line 6): generation 1 is confirmed with other content than this row (amount, note)`) || !strings.Contains(got.Err, "10.01 in 1 changed") {
		t.Errorf("generation 2: stderr\n%s", got.Err)
	}
	// What a real run then says of the changed row names the same field.
	if l := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown).Lines(t)[4]; l.Result != results.Mismatch || !strings.HasSuffix(l.Why(), "what differs: amount, note") {
		t.Errorf("%+v", l)
	}
}

// TestDryRunOfAbandoned: journal stuck is named for rows that it lists, and journal show for those that have ended.
func TestDryRunOfAbandoned(t *testing.T) {
	t.Parallel()
	file, args, _ := standingRows(t)
	j := file + ".oncehttp.db"
	stuck := "held or pending: oncehttp journal stuck --journal " + j + "\n"
	commandtest.Run(t, "journal", "abandon", "idemp:o:2", "--journal", j, "--yes").Want(t, terminal.ExitOK)
	for _, generation := range []string{"1", "2"} {
		got := commandtest.Run(t, append(args, "--dry-run", "--generation", generation)...).Want(t, terminal.ExitOK)
		if show := "1 of the unknown have ended, and nothing more is sent: oncehttp journal show KEY --journal " + j + "\n"; !strings.HasSuffix(got.Err, stuck+show) {
			t.Errorf("generation %s: stderr %q, want at its end %q", generation, got.Err, stuck+show)
		}
		commandtest.WriteFile(t, file, "id,amount,note\n2,10.00,b\n")
		got = commandtest.Run(t, append(args, "--dry-run", "--generation", generation)...).Want(t, terminal.ExitOK)
		if strings.Contains(got.Err, stuck) || !strings.Contains(got.Err, "oncehttp journal show KEY") {
			t.Errorf("generation %s, of the abandoned row alone: stderr %q", generation, got.Err)
		}
		commandtest.WriteFile(t, file, "id,amount,note\n1,10.00,a\n2,10.00,b\n3,10.00,c\n4,10.00,d\n5,10.00,e\n")
	}
}

// A second generation says what keeps a row from being tried anew.
func TestDryRunOfAGeneration(t *testing.T) {
	t.Parallel()
	file, args, _ := standingRows(t)
	got := commandtest.Run(t, append(args, "--dry-run", "--generation", "2")...).Want(t, terminal.ExitOK)
	for _, want := range []string{
		file + ": row 2 (line 3): generation 1 is pending, so that nothing new may be tried\n",
		file + ": row 3 (line 4): generation 1 is held, so that nothing new may be tried\n",
		file + ": 5 rows: 1 new, 2 done, 1 held, 1 pending; 1 would be sent; nothing was sent\n",
	} {
		if !strings.Contains(got.Err, want) {
			t.Errorf("stderr\n%slacks\n%s", got.Err, want)
		}
	}
	none := commandtest.WriteFile(t, "none.csv", "id,amount\n1,1\n")
	args[1] = none
	got = commandtest.Run(t, append(args, "--dry-run", "--generation", "2")...).Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, none+": row 1 (line 2): generation 1 was never sent\n") || !strings.Contains(got.Err, "1 rejected; 0 would be sent") {
		t.Errorf("stderr %q", got.Err)
	}
	if _, err := os.Stat(none + ".oncehttp.db"); err == nil {
		t.Error("there is a journal")
	}
}

// What differs is named, and never shown.
func TestDifferences(t *testing.T) {
	t.Parallel()
	rec := func(body string, change func(*persist.Record)) *persist.Record {
		r := &persist.Record{Method: "POST", Origin: "https://h:443", Target: "/p", Header: http.Header{}, Body: []byte(body), Created: time.Now()}
		if change != nil {
			change(r)
		}
		return r
	}
	form := func(r *persist.Record) { r.Header.Set("Content-Type", input.TypeForm) }
	for name, c := range map[string]struct {
		a, b *persist.Record
		want string
	}{
		"a member":        {rec(`{"amount":1,"x":"secret"}`, nil), rec(`{"amount":2,"x":"secret"}`, nil), "amount"},
		"two and missing": {rec(`{"a":1,"b":2}`, nil), rec(`{"a":2,"c":2}`, nil), "a, b, c"},
		"nested":          {rec(`{"a":{"b":[1,2]}}`, nil), rec(`{"a":{"b":[1,3,4]}}`, nil), "/a/b/1, /a/b/2"},
		"a type":          {rec(`{"a":1}`, nil), rec(`{"a":"1"}`, nil), "a"},
		"spelling":        {rec(`{"a":1}`, nil), rec(`{"a": 1}`, nil), "the spelling of the body"},
		"no JSON":         {rec(`x`, nil), rec(`y`, nil), "the body"},
		"a form":          {rec("a=1&b[c]=2", form), rec("a=1&b[c]=3", form), "b[c]"},
		"elsewhere":       {rec(`{}`, nil), rec(`{}`, func(r *persist.Record) { r.Method, r.Origin, r.Target = "PUT", "https://g:443", "/q" }), "the method, the server, the path or query"},
		"many":            {rec(`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, nil), rec(`{}`, nil), "a, b, c, d, e and 2 more"},
		"a header":        {rec(`{}`, nil), rec(`{}`, nil), "a header"},
		"kept": {rec(`{"amount":1,"x":2}`, nil), rec("", func(r *persist.Record) {
			r.Swept, r.KeptFields = true, []persist.KeptField{{Pointer: "/amount", Value: "2"}, {Pointer: "/y", Omitted: true}}
		}), "amount"},
		"gone": {rec(`{"amount":1}`, nil), rec("", func(r *persist.Record) { r.Swept = true }), "what is no longer kept of its request"},
	} {
		if got := view.Differences(c.a, c.b); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A dry run does not promise a send of a row whose key the server may have forgotten: the run holds it.
func TestDryRunOfExpired(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	args := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1", "--assume", "window=4s", "--attempt-timeout", "1s")
	commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	time.Sleep(4100 * time.Millisecond)
	got := commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK)
	for _, text := range []string{`row 1 (line 2): the key "idemp:o:1" is not sent again: the server may have forgotten the key, and the run holds it`, "1 row: 1 pending; 0 would be sent"} {
		if !strings.Contains(got.Err, text) {
			t.Errorf("it says %q, want %q", got.Err, text)
		}
	}
	if held := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown); !strings.Contains(held.Err, "1 held (key expired)") || s.Sends.Load() != 1 {
		t.Errorf("after %d sends: %q", s.Sends.Load(), held.Err)
	}
}
