package journal

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// selectFlags choose records, for every command with a list of records.
type selectFlags struct {
	states   []string
	results  []string
	since    string
	older    time.Duration
	origin   string
	declined []string
}

// bind adds the flags that select operations to fs.
func (f *selectFlags) bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.states, "state", nil, "only these: "+stateNames())
	fs.StringSliceVar(&f.results, "result", nil, "only these: "+results.Help())
	fs.StringVar(&f.since, "since", "", "only what was created since: a duration (2h, 3d) or a time (2026-01-31, 2026-01-31T10:00:00Z)")
	settings.BindAge(fs, &f.older, "older", "only what was created longer ago than this")
	fs.StringVar(&f.origin, "origin", "", "only what goes to this server, such as https://api.example.com:443")
	results.BindDeclines(fs, &f.declined)
}

// selection holds the flags after reading.
type selection struct {
	query    persist.Query
	globs    session.KeyPatterns
	results  []results.Result
	since    time.Time
	before   time.Time
	origin   string
	declines results.Declines
}

// selection reads the flags, and returns the selection of records within q. globs are patterns of keys with * and ?; none selects every key. now is the time from which
// ages count.
func (f *selectFlags) selection(q persist.Query, globs []string, now time.Time) (selection, error) {
	s := selection{query: q, globs: globs, origin: f.origin}
	var err error
	if s.query.States, err = parseStates(f.states); err != nil {
		return s, err
	}
	if s.results, err = results.Parse(f.results); err != nil {
		return s, err
	}
	if s.declines, err = results.ParseDeclines(f.declined); err != nil {
		return s, err
	}
	if s.since, err = parseSince(f.since, now); err != nil {
		return s, err
	}
	if f.older > 0 {
		s.before = now.Add(-f.older)
	}
	return s, s.globs.Check()
}

// know sets the declines, the answers that count as refusals, to those that the journal keeps of earlier runs, and returns their texts. With --declined it changes
// nothing, and returns none.
func (s *selection) know(ctx context.Context, ses *session.Session) (texts []string, err error) {
	if len(s.declines) == 0 {
		s.declines, texts, err = session.KnownDeclines(ctx, ses)
	}
	return texts, err
}

// parseSince reads the value of --since: a duration before now, days included, or a time. An empty text gives the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := settings.ParseAge(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if text == "" {
		return time.Time{}, nil
	}
	return time.Time{}, fmt.Errorf("--since %q: want a duration such as 2h or 3d, or a time such as 2026-01-31 or 2026-01-31T10:00:00Z", words.Clip(text))
}

// all reports whether every record of the journal is selected.
func (s *selection) all() bool {
	return s.query.AllAccounts && len(s.query.States)+len(s.globs)+len(s.results) == 0 && s.since.IsZero() && s.before.IsZero() && s.origin == ""
}

// match reports whether the record is selected by its time, origin, result and key. Account and state are not compared: the query of the journal does that.
func (s *selection) match(rec *persist.Record) bool {
	switch {
	case rec.Created.Before(s.since), !s.before.IsZero() && !rec.Created.Before(s.before):
		return false
	case s.origin != "" && rec.Origin != s.origin:
		return false
	case len(s.results) > 0 && !slices.Contains(s.results, s.declines.ResultOfRecord(rec)):
		return false
	}
	return s.globs.Match(rec.Key)
}

// each calls do for every selected record, oldest first.
func (s *selection) each(ctx context.Context, ses *session.Session, do func(*persist.Record) error) error {
	return session.EachRecord(ctx, ses, s.query, func(rec *persist.Record) error {
		if !s.match(rec) {
			return nil
		}
		return do(rec)
	})
}

// sayUnmatched says on stderr which of the keys, or patterns of keys, select no operation of the journal, whatever its state: a mistyped key must not look like one of
// which nothing is to be said. Errors of the journal come with the listing itself.
func (s *selection) sayUnmatched(ctx context.Context, ses *session.Session, stderr io.Writer) {
	q, missing := s.query, slices.Clone(s.globs)
	q.States = nil
	for rec, err := range ses.Journal.List(ctx, q) {
		if err != nil || len(missing) == 0 {
			return
		}
		missing = slices.DeleteFunc(missing, func(glob string) bool { return session.KeyPatterns{glob}.Match(rec.Key) })
	}
	for _, glob := range missing {
		terminal.Say(stderr, "no operation of %s has the key %q", ses.Place.Name, words.Clip(glob))
	}
}

// sortOrders returns the values of --sort, each with a function that compares two records. Listings put the greatest first.
func sortOrders() map[string]func(a, b *persist.Record) int {
	return map[string]func(a, b *persist.Record) int{
		"created":  func(a, b *persist.Record) int { return a.Created.Compare(b.Created) },
		"finished": func(a, b *persist.Record) int { return a.Finished.Compare(b.Finished) },
		"attempts": func(a, b *persist.Record) int { return cmp.Compare(a.Attempts, b.Attempts) },
		"sends":    func(a, b *persist.Record) int { return cmp.Compare(a.Sends, b.Sends) },
	}
}

// top returns the greatest selected records by order, at most limit of them, greatest first. It reads all records, and needs memory for limit of them.
func (s *selection) top(ctx context.Context, ses *session.Session, limit int, order func(a, b *persist.Record) int) ([]persist.Record, error) {
	h := &recordHeap{order: order}
	err := s.each(ctx, ses, func(rec *persist.Record) error {
		heap.Push(h, *rec)
		if h.Len() > limit {
			heap.Pop(h) // takes out the least
		}
		return nil
	})
	slices.SortStableFunc(h.records, func(a, b persist.Record) int { return order(&b, &a) })
	return h.records, err
}

// recordHeap is a heap.Interface with the least record on top.
type recordHeap struct {
	records []persist.Record
	order   func(a, b *persist.Record) int
}

// Len implements [sort.Interface] for container/heap.
func (h *recordHeap) Len() int { return len(h.records) }

// Less implements [sort.Interface] for container/heap, by the order of the listing.
func (h *recordHeap) Less(i, j int) bool { return h.order(&h.records[i], &h.records[j]) < 0 }

// Swap implements [sort.Interface] for container/heap.
func (h *recordHeap) Swap(i, j int) { h.records[i], h.records[j] = h.records[j], h.records[i] }

// Push appends a record; heap.Push calls it.
func (h *recordHeap) Push(x any) { h.records = append(h.records, x.(persist.Record)) }

// Pop takes the last record off the slice; heap.Pop calls it after moving the least one there.
func (h *recordHeap) Pop() any {
	last := h.records[len(h.records)-1]
	h.records = h.records[:len(h.records)-1]
	return last
}
