package batch

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
)

// progress tells the person at the terminal how far a batch is. On a terminal it draws one line again and again;
// if stderr is no terminal, it prints a line every linePause. All other text for the terminal goes through beside,
// so the two do not mix. Safe for concurrent use.
type progress struct {
	w        io.Writer
	name     string
	terminal bool
	silent   bool
	columns  func() int

	mu        sync.Mutex
	phase     string
	began     time.Time
	total     int // 0: not known yet
	done      int
	sent      int // of these, not from the journal
	running   int
	others    int                  // of the running: another process has them
	pauses    map[string]time.Time // of the running: by key, when the next attempt is due
	results   map[results.Result]int
	lastError string
	lastDone  time.Time // the end of the last row
	sentSince time.Time // beginning of the first row not answered by the journal
	drawn     bool      // the line stands on the terminal
	midLine   bool      // somebody else has written a part of a line

	stop    chan struct{}
	end     sync.Once
	stopped sync.WaitGroup
}

const (
	drawPause = 200 * time.Millisecond
	linePause = 10 * time.Second
	etaStale  = 5 * time.Second // without the end of a row, after which the rest has no time
)

// newProgress returns the progress of a batch, and starts to draw it on stderr. name is the name of the input. With quiet it prints nothing.
func newProgress(stderr io.Writer, name string, quiet bool) *progress {
	p := &progress{
		w: stderr, name: name, terminal: terminal.IsTerminal(stderr), silent: quiet,
		columns: func() int { return terminal.ColumnsOf(stderr) }, phase: "checking", began: time.Now(),
		results: make(map[results.Result]int), stop: make(chan struct{}),
	}
	if p.silent {
		return p
	}
	pause := linePause // a log gets a line now and then; the line on a terminal is drawn often
	if p.terminal {
		pause = drawPause
		p.draw()
	}
	p.stopped.Go(func() { p.tick(pause) })
	return p
}

// tick draws the progress again after each pause, until p.stop is closed. newProgress runs it as a goroutine.
func (p *progress) tick(pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.draw()
		case <-p.stop:
			return
		}
	}
}

// checked sets the number of rows checked so far. The first reading of the input calls it now and then.
func (p *progress) checked(rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = rows
}

// sending begins the second phase, after the check of all rows. total is the number of rows.
func (p *progress) sending(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase, p.began, p.total, p.done = "sending", time.Now(), total, 0
}

// note sets the word for what the batch is doing, such as "interrupted".
func (p *progress) note(phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = phase
}

// start counts a row with a send as begun, and starts the clock of the rate at the first one. A call of add or putOff must follow for the row.
func (p *progress) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running++; p.sentSince.IsZero() {
		p.sentSince = time.Now()
	}
}

// recorded counts a row answered by the journal as begun. A call of add must follow for the row.
func (p *progress) recorded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
}

// putOff takes back start for a row that another process is sending: the row begins again later.
func (p *progress) putOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
}

// pause counts a running row as one that waits until a time for its next attempt; the zero time ends that. Another call for the key replaces the first.
func (p *progress) pause(key string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.IsZero() {
		delete(p.pauses, key)
		return
	}
	if p.pauses == nil {
		p.pauses = map[string]time.Time{}
	}
	p.pauses[key] = until
}

// elsewhere counts n more running rows that wait for another process, which has them; -1: one less.
func (p *progress) elsewhere(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others += n
}

// beside returns a writer to w for all text but the progress line. It takes the progress line off the terminal before each text, so that the two do not mix. Without a
// terminal it returns w.
func (p *progress) beside(w io.Writer) io.Writer {
	if p.silent || !p.terminal {
		return w
	}
	return besideWriter{p, w}
}

// besideWriter is the writer returned by beside.
type besideWriter struct {
	p *progress
	w io.Writer
}

// Beneath returns the wrapped writer. terminal.Over asks for it to find out whether the text goes to a terminal in the end.
func (b besideWriter) Beneath() io.Writer { return b.w }

// Write takes the progress line off the terminal, and writes text in its place. The line is drawn again later, once the text has ended its line.
func (b besideWriter) Write(text []byte) (int, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if b.p.drawn {
		_, _ = fmt.Fprint(b.p.w, "\r\x1b[K")
		b.p.drawn = false
	}
	if len(text) > 0 {
		b.p.midLine = text[len(text)-1] != '\n'
	}
	return b.w.Write(text)
}

// lateWriter writes to a Writer set later.
type lateWriter struct{ io.Writer }

// Beneath returns the wrapped writer. terminal.Over asks for it to find out whether the text goes to a terminal in the end.
func (w *lateWriter) Beneath() io.Writer { return w.Writer }

// add ends a row begun by start or recorded, and counts its result for the progress line. A row not answered by the journal also counts for the rate.
func (p *progress) add(l *results.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.done++
	p.lastDone = time.Now()
	p.results[l.Result]++
	if l.Source != "journal" {
		p.sent++
	}
	if l.Error != nil {
		p.lastError = strings.TrimSpace(fmt.Sprintf("%s %s", results.Group{Status: l.Status}.Text(), l.Error.Code))
	}
}

// draw prints the progress: over the old line on a terminal, else as a new line. In the middle of another text's line it draws nothing.
func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.text(time.Now())
	if !p.terminal {
		terminal.Say(p.w, "%s", text)
		return
	}
	if !p.midLine {
		_, _ = fmt.Fprintf(p.w, "\r%s\x1b[K", cut(text, p.columns()-1))
		p.drawn = true
	}
}

// text returns the line that shows the progress at now: the rows done, their results, the rate, and the time that is left. The caller holds mu.
func (p *progress) text(now time.Time) string {
	if p.total == 0 { // the first reading does not know yet how many rows there are
		return fmt.Sprintf("%s: %s, %d rows so far", p.name, p.phase, p.done)
	}
	parts := []string{fmt.Sprintf("%s: %s %d/%d", p.name, p.phase, p.done, p.total)}
	for _, r := range results.All() {
		if n := p.results[r]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, r))
		}
	}
	if p.running > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", p.running)+p.pauseText(now))
	}
	if took := now.Sub(p.sentSince).Seconds(); took > 0 && p.sent > 0 { // rows answered by the journal take no time
		rate := float64(p.sent) / took
		if parts = append(parts, fmt.Sprintf("%.3g/s", rate)); now.Sub(p.lastDone) < etaStale { // else the rest waits, and the rate says nothing of it
			parts = append(parts, "ETA "+view.Roughly(time.Duration(float64(p.total-p.done)/rate*float64(time.Second))))
		}
	}
	if p.lastError != "" {
		parts = append(parts, "last error "+p.lastError)
	}
	return strings.Join(parts, ", ")
}

// pauseText returns the words for the running rows that wait for the time of their next attempt; "" if none does. The caller holds mu.
func (p *progress) pauseText(now time.Time) string {
	if p.others > 0 {
		return fmt.Sprintf(" (%d that another process has, or had when it died)", p.others)
	}
	var first time.Time
	for _, until := range p.pauses {
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	if left := first.Sub(now); len(p.pauses) > 0 && left >= time.Second {
		return fmt.Sprintf(" (%d for their next attempt, the first in %s)", len(p.pauses), view.Roughly(left))
	}
	return ""
}

// finish ends the drawing, and takes the line off the terminal. A second call does nothing.
func (p *progress) finish() {
	if !p.silent {
		p.end.Do(p.clear)
	}
}

// clear does the work of finish, which calls it once: it stops tick, waits for its end, and takes the line off the terminal.
func (p *progress) clear() {
	close(p.stop)
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.drawn {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// cut shortens text to at most most characters, with "…" at its end. A most below 1 is no bound.
func cut(text string, most int) string {
	if most < 1 || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
