package batch

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// Where stderr is a file there is a line every ten seconds, and it says what has
// happened so far.
func TestProgressOnALineEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := newProgress(&errs, "in.csv", false)
		p.checked(4096)
		time.Sleep(10*time.Second + time.Millisecond)
		p.sending(100)
		for range 30 {
			p.start()
			p.add(&results.Line{Result: results.Done})
		}
		p.start()
		p.start()
		p.add(&results.Line{Result: results.Declined, Status: 402, Error: &results.LineError{Code: "card_declined"}})
		time.Sleep(10 * time.Second)
		p.finish()
		p.finish()
		time.Sleep(time.Minute)
		want := "in.csv: checking, 4096 rows so far\n" +
			"in.csv: sending 31/100, 30 done, 1 declined, 1 waiting, 3.1/s, last error 402 card_declined\n"
		if errs.String() != want {
			t.Errorf("got\n%swant\n%s", errs.String(), want)
		}
	})
}

// The line on a terminal is never wider than it.
func TestProgressFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	p := &progress{w: &errs, name: strings.Repeat("ü", 50), terminal: true, columns: func() int { return 40 }, phase: "sending", total: 5, results: map[results.Result]int{}}
	p.draw()
	text := strings.TrimSuffix(strings.TrimPrefix(errs.String(), "\r"), "\x1b[K")
	if n := len([]rune(text)); n != 39 {
		t.Errorf("%d characters: %q", n, text)
	}
}

// The rate and the time that is left are of what is sent: rows that the journal answers take no time.
func TestProgressCountsWhatIsSent(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &progress{name: "in", phase: "sending", results: map[results.Result]int{}, total: 100, began: now.Add(-time.Hour)}
	for range 50 {
		p.recorded()
		p.add(&results.Line{Result: results.Done, Source: "journal"})
	}
	if text := p.text(now); strings.Contains(text, "ETA") {
		t.Errorf("%q, and nothing was sent", text)
	}
	for range 10 {
		p.start()
		p.add(&results.Line{Result: results.Done, Source: "wire"})
	}
	p.sentSince = now.Add(-10 * time.Second)
	if text := p.text(now); !strings.HasSuffix(text, "sending 60/100, 60 done, 1/s, ETA 40s") {
		t.Errorf("%q", text)
	}
	if text := p.text(now.Add(10 * time.Second)); strings.Contains(text, "ETA") {
		t.Errorf("%q, and nothing has ended for ten seconds", text)
	}
}

// TestProgressNamesPauses: rows that wait for the time of their next attempt are counted apart, with the time until the first of them; a later call ends that.
func TestProgressNamesPauses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &progress{name: "in", phase: "sending", results: map[results.Result]int{}, total: 5, began: now}
	for range 3 {
		p.start()
	}
	p.pause("a", now.Add(40*time.Second))
	p.pause("b", now.Add(20*time.Second))
	if text := p.text(now); !strings.HasSuffix(text, "sending 0/5, 3 waiting (2 for their next attempt, the first in 20s)") {
		t.Errorf("%q", text)
	}
	p.pause("b", time.Time{})
	if text := p.text(now); !strings.HasSuffix(text, "3 waiting (1 for their next attempt, the first in 40s)") {
		t.Errorf("%q", text)
	}
	if text := p.text(now.Add(time.Minute)); !strings.HasSuffix(text, "3 waiting") {
		t.Errorf("once it is due: %q", text)
	}
}

// Other lines do not run into the line of the progress, nor it into half a line.
func TestProgressBesideOtherLines(t *testing.T) {
	t.Parallel()
	var screen bytes.Buffer
	p := &progress{w: &screen, name: "in", terminal: true, columns: func() int { return 80 }, phase: "sending", total: 5, results: map[results.Result]int{}}
	w := p.beside(&screen)
	for _, text := range []string{"one\n", "ha", "lf\n"} {
		p.draw()
		_, _ = w.Write([]byte(text))
	}
	const shown = "\rin: sending 0/5\x1b[K"
	if want := shown + "\r\x1b[Kone\n" + shown + "\r\x1b[Kha" + "lf\n"; screen.String() != want {
		t.Errorf("got %q, want %q", screen.String(), want)
	}
	if p.silent = true; p.beside(&screen) != &screen {
		t.Error("a silent progress has no line to take away")
	}
}
