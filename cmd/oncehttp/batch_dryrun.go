package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// dryRunRows is how many requests --dry-run shows, and dryRunNotes how many rows it names that would not be sent.
const (
	dryRunRows  = 5
	dryRunNotes = 20
)

// The classes of rows before they are sent, beside those of operations in the journal.
const (
	classNew     class = "new"
	classChanged class = "changed" // the key stands with other content
)

// dryRunLine is a request that would be sent. The values of headers, which may be
// credentials, are not shown.
type dryRunLine struct {
	Row     int             `json:"row"`
	Key     string          `json:"key"`
	Method  string          `json:"method"`
	URL     string          `json:"url"`
	Headers []string        `json:"headers"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// dryRun tells what a run would do, by the journal as it stands.
type dryRun struct {
	*batch
	classes map[class]int
	totals  totals
	later   int // pending rows that are not due
	until   time.Time
	notes   []string
	unnamed int // rows for which no note is left
	shown   int // rows that would be sent
}

// dryRun prints the first rows that would be sent, and how all rows stand.
func (f *batchFlags) dryRun(ctx context.Context, in *input, p *plan, sv *survey, at place, s streams) error {
	d := &dryRun{batch: &batch{flags: f, plan: p, survey: sv, in: in, streams: s}, classes: map[class]int{}}
	d.totals.name = sv.totals.name
	ses, err := openExisting(at)
	if err != nil {
		return err
	}
	if d.session = ses; ses == nil {
		return d.run(ctx)
	}
	return joinExit(d.run(ctx), ses.close())
}

// openExisting opens a journal to read it; nil where there is none yet.
func openExisting(at place) (*session, error) {
	if at.isFile() {
		if _, err := os.Stat(at.path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return openReader(at)
}

func (d *dryRun) run(ctx context.Context) error {
	rows, err := newRows(d.in.name, d.in.reader(), d.plan.needs)
	if err != nil {
		return err
	}
	repeats := d.survey.repeats
	enc := json.NewEncoder(d.streams.out)
	enc.SetEscapeHTML(false)
	for at := 0; ; at++ {
		if ctx.Err() != nil {
			return errInterrupted()
		}
		r, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c, sends := class(resultDuplicate), false
		if len(repeats) > 0 && repeats[0].at == at {
			repeats = repeats[1:]
		} else if c, sends, err = d.foresee(ctx, &r); err != nil {
			return err
		}
		d.classes[c]++
		d.plan.count(&d.totals, c, &r)
		if sends {
			err = d.show(ctx, &r, enc)
		}
		if err != nil {
			return err
		}
	}
	d.conclude()
	return nil
}

// show prints the request of a row, if it is one of the first.
func (d *dryRun) show(ctx context.Context, r *row, enc *json.Encoder) error {
	if d.shown++; d.shown > dryRunRows {
		return nil
	}
	req, err := d.plan.request(ctx, r)
	if err != nil {
		return err
	}
	l := dryRunLine{
		Row: r.number, Key: string(d.plan.keyOf(r, d.plan.generation)), Method: req.Method, URL: req.URL.Redacted(),
		Headers: slices.Sorted(maps.Keys(req.Header)),
	}
	l.Body, _ = bodyView(r.body)
	return pathless(enc.Encode(l))
}

// foresee is how a row stands, and whether it would be sent.
func (d *dryRun) foresee(ctx context.Context, r *row) (c class, sends bool, err error) {
	if d.session == nil {
		if d.plan.generation > 1 {
			d.note(r, "generation 1 was never sent")
			return classUnsent, false, nil
		}
		return classNew, true, nil
	}
	if d.plan.generation > 1 {
		if l, found := d.standing(ctx, r); found {
			d.note(r, l.why())
			return l.class(), false, nil
		}
	}
	rec, err := d.lookup(ctx, d.plan.keyOf(r, d.plan.generation))
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return classNew, true, nil
	case err != nil && !persist.OfOneRecord(err):
		return "", false, journalError(d.session.place.name, err)
	case err != nil:
		d.note(r, plain(err).Error())
		return classUnknown, false, nil
	}
	if which, err := d.differs(ctx, r, d.plan.generation, &rec); err != nil {
		return "", false, err
	} else if which != "" {
		d.note(r, fmt.Sprintf("the key %q is %s with other content: %s", rec.Key, stateText(&rec), which))
		return classChanged, false, nil
	}
	if rec.State == persist.StatePending && rec.NextAttempt.After(time.Now()) {
		if d.later++; d.until.IsZero() || rec.NextAttempt.Before(d.until) {
			d.until = rec.NextAttempt
		}
	}
	return d.flags.declines.classOfRecord(&rec), rec.State == persist.StatePending, nil
}

// note says why a row would not be sent as it stands.
func (d *dryRun) note(r *row, why string) {
	if why == "" {
		return
	}
	if len(d.notes) == dryRunNotes {
		d.unnamed++
		return
	}
	d.notes = append(d.notes, (&inputError{file: d.in.name, row: r.number, line: r.line, err: errors.New(why)}).Error())
}

// conclude prints how all rows stand.
func (d *dryRun) conclude() {
	for _, text := range d.notes {
		say(d.streams.err, "%s", text)
	}
	if d.unnamed > 0 {
		say(d.streams.err, "%s: %s alike", d.in.name, count(d.unnamed, "more row"))
	}
	var parts []string
	for _, c := range allClasses() {
		if n := d.classes[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	text := fmt.Sprintf("%s: %s: %s; %d would be sent", d.in.name, count(d.survey.rows, "row"), strings.Join(parts, ", "), d.shown)
	if d.later > 0 {
		text += fmt.Sprintf(", %d of them not before %s or later", d.later, d.until.UTC().Format(time.RFC3339))
	}
	say(d.streams.err, "%s; nothing was sent", text)
	for _, text := range d.totals.lines("row") {
		say(d.streams.err, "%s", text)
	}
	if d.classes[classHeld]+d.classes[classUnknown] > 0 {
		say(d.streams.err, "held or unknown: oncehttp journal stuck --journal %s", shellQuote(d.session.place.arg))
	}
}
