package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Where stderr is a file there is a line every ten seconds, and it says what has
// happened so far.
func TestProgressOnALineEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		p := newProgress(&errs, &bytes.Buffer{}, "in.csv", false)
		p.checked(4096)
		time.Sleep(10*time.Second + time.Millisecond)
		p.sending(100)
		for range 30 {
			p.start()
			p.add(&line{Result: resultDone})
		}
		p.start()
		p.start()
		p.add(&line{Result: resultDeclined, Status: 402, Error: &lineError{Code: "card_declined"}})
		time.Sleep(10 * time.Second)
		p.finish()
		p.finish()
		time.Sleep(time.Minute)
		want := "in.csv: checking, 4096 rows so far\n" +
			"in.csv: sending 31/100, 30 done, 1 declined, 1 waiting, 3.1/s, ETA 22s, last error 402 card_declined\n"
		if errs.String() != want {
			t.Errorf("got\n%swant\n%s", errs.String(), want)
		}
	})
}

// The line on a terminal is never wider than it.
func TestProgressFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	p := &progress{w: &errs, name: strings.Repeat("ü", 50), terminal: true, columns: func() int { return 40 }, phase: "sending", total: 5, results: map[result]int{}}
	p.draw()
	text := strings.TrimSuffix(strings.TrimPrefix(errs.String(), "\r"), "\x1b[K")
	if n := len([]rune(text)); n != 39 {
		t.Errorf("%d characters: %q", n, text)
	}
}
