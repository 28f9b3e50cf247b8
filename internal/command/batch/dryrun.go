package batch

import (
	"cmp"
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

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// dryRunRows is the number of requests shown by --dry-run. dryRunNotes is the greatest number of rows named as not
// to be sent.
const (
	dryRunRows  = 5
	dryRunNotes = 20
)

// dryRunLine is a request to be sent. The values of headers may be credentials, and are not shown.
type dryRunLine struct {
	Row     int             `json:"row"`
	Key     string          `json:"key"`
	Method  string          `json:"method"`
	URL     string          `json:"url"`
	Headers []string        `json:"headers"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// dryRun predicts the effects of a run, by the journal as it stands.
type dryRun struct {
	*batch
	classes map[results.Class]int
	totals  results.Totals
	later   int // pending rows not yet due
	ended   int // unknown rows whose operations have ended, such as abandoned ones
	until   time.Time
	notes   []string
	unnamed int // rows beyond dryRunNotes
	wasDone int // declined rows that were told as done before
	hidden  int // declined rows of which an earlier send may have taken effect
	shown   int // rows a run would send
	taken   int // rows in a row whose keys stand for other requests
	stop    int // the row at which a run would stop for them; 0: none
}

// dryRun does the work of --dry-run after the checks: it prints the first requests to be sent, and the state of all rows in the journal. It sends and writes nothing.
// cfg is the configuration of the run's client. The error has the exit status.
func (f *batchFlags) dryRun(ctx context.Context, b *batch, at place.Place, cfg oncehttp.Config) error {
	d := &dryRun{batch: b, classes: map[results.Class]int{}}
	d.totals.Name = b.survey.totals.Name
	ses, err := openExisting(at)
	if err != nil {
		return err
	}
	if d.session = ses; ses == nil {
		return d.run(ctx)
	}
	if err = f.asBefore(ctx, ses, d.survey.origin, d.plan.profile); err != nil { // a flag of earlier runs was forgotten
		return errors.Join(err, ses.Close())
	}
	if d.sender, err = session.SenderOf(ctx, ses, cfg); err != nil { // tells which records a run's client may send
		return errors.Join(err, ses.Close())
	}
	// The values of --declined of earlier runs count, too.
	if err = f.TakeDeclines(ctx, ses, func(text string) { terminal.Say(d.streams.Err, "%s", text) }); err == nil {
		if err = d.sayRestored(ctx); err == nil {
			if d.unprotectedRestore() {
				d.without = "--yes" // without this flag a run would be refused
				terminal.Say(d.streams.Err, "a run is refused: %v", errRestoredUnprotected)
			}
			err = d.run(ctx)
		}
	}
	return terminal.JoinExit(err, ses.Close())
}

// openExisting opens a journal for reading. It returns nil without an error if the journal's file does not exist yet.
func openExisting(at place.Place) (*session.Session, error) {
	if at.IsFile() {
		if _, err := os.Stat(at.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return session.OpenReader(at)
}

// run reads the input again, counts each row in its class (the state of the row by the journal, such as new or done), and prints the requests of the first rows that
// a run would send. The error has the exit status. Nothing is sent.
func (d *dryRun) run(ctx context.Context) error {
	rows, err := input.NewRows(d.in.Name, d.in.Reader(), d.plan.needs)
	if err != nil {
		return err
	}
	repeats := d.survey.repeats
	type first struct {
		class results.Class
		ended int // 1: it has ended, although unknown
	}
	firsts := map[int]first{} // the rows that others repeat, by their numbers; r.of is that of the first, r.at the place of its repetition
	for _, r := range repeats {
		firsts[r.of] = first{class: results.ClassNew}
	}
	enc := json.NewEncoder(d.streams.Out)
	enc.SetEscapeHTML(false)
	for at := 0; ; at++ {
		if ctx.Err() != nil {
			return terminal.Interrupted()
		}
		r, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		c, sends := results.Class(results.Duplicate), false
		ended := d.ended
		if len(repeats) > 0 && repeats[0].at == at {
			if of := firsts[repeats[0].of]; of.class != results.ClassNew && !isSuccess(results.Result(of.class)) {
				c, d.ended = of.class, d.ended+of.ended // as in a run: a repetition of a row that is not done has its state
			}
			repeats = repeats[1:]
		} else if c, sends, err = d.foresee(ctx, &r); err != nil {
			return err
		}
		if _, repeated := firsts[r.Number]; repeated {
			firsts[r.Number] = first{c, d.ended - ended} // 1 if foresee has counted this row as ended
		}
		d.classes[c]++
		d.plan.count(&d.totals, c, &r)
		if !d.stopsAt(&r, c) && sends {
			err = d.show(ctx, &r, enc)
		}
		if err != nil {
			return err
		}
	}
	d.conclude()
	switch {
	case d.without != "":
		return terminal.ExitWith(terminal.ExitUsage)
	case d.classes[results.ClassChanged] > 0:
		return terminal.ExitWith(terminal.ExitRefused)
	}
	return nil
}

// show prints the request that a run would send for a row, as a line of JSON, if it is one of the first rows to be sent. It counts these rows in d.shown.
func (d *dryRun) show(ctx context.Context, r *input.Row, enc *json.Encoder) error {
	if d.shown++; d.shown > dryRunRows {
		return nil
	}
	req, err := d.plan.request(ctx, r)
	if err != nil {
		return err
	}
	l := dryRunLine{
		Row: r.Number, Key: string(d.plan.keyOf(r, d.plan.generation)), Method: req.Method, URL: req.URL.Redacted(),
		Headers: slices.Sorted(maps.Keys(req.Header)),
	}
	l.Body, _ = view.Body(r.Body)
	return words.Pathless(enc.Encode(l))
}

// foresee returns the class of a row, its state by the journal, such as new, done or held. sends is true if a run would send the row now. It follows the same rules
// as a run, but only reads. A nil d.session means that there is no journal yet. d.ended counts rows of unknown outcome whose operations have ended. The error says
// that the journal fails; c is "" then.
func (d *dryRun) foresee(ctx context.Context, r *input.Row) (c results.Class, sends bool, err error) {
	if d.session == nil {
		if d.plan.generation > 1 {
			d.note(r, neverSent)
			return results.Class(results.Rejected), false, nil
		}
		return results.ClassNew, true, nil
	}
	if d.plan.generation > 1 {
		if l, found := d.standing(ctx, r); found { // an earlier generation (try) forbids this one
			d.note(r, l.Why())
			if l.State == persist.StateAbandoned.String() {
				d.ended++
			}
			if isCollided(&l) {
				return results.ClassChanged, false, nil
			}
			return l.Class(), false, nil
		}
	}
	rec, err := d.lookup(ctx, d.plan.keyOf(r, d.plan.generation))
	switch {
	case errors.Is(err, persist.ErrNotFound):
		if c = d.replacedEarlier(ctx, r); c != "" {
			return c, false, nil
		}
		return results.ClassNew, true, nil
	case err != nil && !persist.OfOneRecord(err):
		return "", false, place.JournalError(d.session.Place.Name, err)
	case err != nil:
		d.note(r, terminal.Plain(err).Error())
		return results.ClassUnknown, false, nil
	}
	if c = d.decided(ctx, r, &rec); c != "" {
		return c, false, nil
	}
	if which, err := d.differs(ctx, r, d.plan.generation, &rec); err != nil {
		return "", false, err
	} else if which != "" {
		d.note(r, fmt.Sprintf("the key %q is %s with other content: %s", rec.Key, view.StateText(&rec), which))
		return results.ClassChanged, false, nil
	}
	if c = d.replaced(ctx, r, &rec); c != "" {
		return c, false, nil
	}
	if why := cmp.Or(unsentText(&rec, time.Now()), d.distrusts(ctx, r, &rec)); why != "" {
		d.note(r, fmt.Sprintf("the key %q is not sent again: %s", rec.Key, why))
		return d.flags.Declines.ClassOfRecord(&rec), false, nil
	}
	if lack := d.lacks(&rec); rec.State == persist.StatePending && lack.Need != acts.Nothing { // such as a region or a credential
		d.note(r, fmt.Sprintf("the key %q is not sent: %s", rec.Key, words.FlagWords(lack.Why)))
		return d.flags.Declines.ClassOfRecord(&rec), false, nil
	}
	d.noteLater(&rec)
	d.noteDeclined(&rec)
	if c = d.flags.Declines.ClassOfRecord(&rec); c == results.ClassUnknown && rec.State.Final() {
		d.ended++
	}
	return c, rec.State == persist.StatePending, nil
}

// stopsAt counts a row of a class for the stop that takenRowsMost rows in a row would make, and returns true from that row on.
func (d *dryRun) stopsAt(r *input.Row, c results.Class) bool {
	switch {
	case c == results.ClassChanged:
		d.taken++
	case c != results.ClassNew:
		d.taken = 0
	}
	if d.stop == 0 && d.flags.maxErrors > 0 && d.taken >= takenRowsMost {
		d.stop = r.Number
	}
	return d.stop > 0
}

// noteDeclined counts a declined operation that no run tries anew without --yes, by the reason: an earlier run told it as done (WasDone), or it was sent more than once, and
// an earlier send may have taken effect (MayHideEffect). Any other operation it does not count.
func (d *dryRun) noteDeclined(rec *persist.Record) {
	switch {
	case d.flags.WasDone(rec):
		d.wasDone++
	case d.flags.MayHideEffect(rec):
		d.hidden++
	}
}

// noteLater counts a pending operation whose next attempt is not due yet, and keeps the earliest of these times.
func (d *dryRun) noteLater(rec *persist.Record) {
	if rec.State != persist.StatePending || !rec.NextAttempt.After(time.Now()) {
		return
	}
	if d.later++; d.until.IsZero() || rec.NextAttempt.Before(d.until) {
		d.until = rec.NextAttempt
	}
}

// decided returns the class (such as done) of a row that needs no comparison with its record rec: a later try of the row succeeded, or the record was erased, and
// its content with it. It returns "" for any other row.
func (d *dryRun) decided(ctx context.Context, r *input.Row, rec *persist.Record) results.Class {
	if rec.State.Final() && !isSuccess(d.flags.Declines.ResultOfRecord(rec)) {
		switch last, at := d.latest(ctx, r); {
		case at == 0:
		case d.isDone(ctx, r, at, &last):
			return results.Class(d.flags.Declines.ResultOfRecord(&last))
		case !d.isSame(ctx, r, d.plan.generation, rec) && !d.isSame(ctx, r, at, &last): // the row has changed: foresee compares it
		case last.State == persist.StateHeld, last.State == persist.StatePending, last.State == persist.StateAbandoned: // as inDoubt in a run
			d.note(r, fmt.Sprintf("generation %d of it is %s: go on with --generation %d", at, view.StateText(&last), at))
			return d.flags.Declines.ClassOfRecord(&last)
		}
	}
	if rec.Erased {
		return d.flags.Declines.ClassOfRecord(rec)
	}
	return ""
}

// unsentText returns the reason against sending a pending operation now, and the step of a run in place of the send; "" if a run sends it, or if it is not pending.
func unsentText(rec *persist.Record, now time.Time) string {
	op := operation.OpOf(rec, 0) // 0: for how long the API knows the key, the record says
	if rec.State != persist.StatePending {
		return ""
	}
	switch operation.ProspectOf(&op, now) {
	case operation.WaitsForClock:
		return "the clock stands before its first send, and the run waits"
	case operation.WillHaveNoKey:
		return "it may have been sent, no key protects another send, and the run holds it"
	case operation.WillExpire:
		return "the server may have forgotten the key, and the run holds it"
	case operation.WillBeLate:
		return "the time for its first send is over, and the run holds it"
	case operation.WillBeProven:
		return "an event of the API proves that it happened, and the run settles it"
	}
	return ""
}

// note keeps a message about a row that is not sent, with its reason; conclude prints it. An empty reason keeps nothing. Beyond dryRunNotes it only counts.
func (d *dryRun) note(r *input.Row, why string) {
	if why == "" {
		return
	}
	if len(d.notes) == dryRunNotes {
		d.unnamed++
		return
	}
	d.notes = append(d.notes, (&input.RowError{File: d.in.Name, Row: r.Number, Line: r.Line, Err: errors.New(why)}).Error())
}

// conclude prints the messages about single rows, the number of rows in each state, the totals, and the next steps. It is called once, after the last row.
func (d *dryRun) conclude() {
	for _, text := range d.notes {
		terminal.Say(d.streams.Err, "%s", text)
	}
	if d.unnamed > 0 {
		terminal.Say(d.streams.Err, "%s: %s alike", d.in.Name, words.Count(d.unnamed, "more row"))
	}
	var parts []string
	for _, c := range results.AllClasses() {
		if n := d.classes[c]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	text := d.in.Name + ": " + words.Count(d.survey.rows, "row")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	text += fmt.Sprintf("; %d would be sent", d.shown)
	if d.later > 0 {
		text += fmt.Sprintf(", %d of them not before %s or later", d.later, d.until.UTC().Format(time.RFC3339))
	}
	if d.stop > 0 {
		text += fmt.Sprintf(" before a stop at row %d, where the keys of %s%s", d.stop, takenText(takenRowsMost), flagged)
	}
	if d.without != "" {
		text += " with " + d.without + ", and none without"
	}
	terminal.Say(d.streams.Err, "%s; nothing was sent", text)
	for _, text := range d.totals.Lines("row") {
		terminal.Say(d.streams.Err, "%s", text)
	}
	if text := d.survey.suspects.unit(d.plan, d.flags.Profile); text != "" {
		terminal.Say(d.streams.Err, "%s", text)
	}
	d.advise()
}

// advise prints the next steps for rows that a person has to look at: rows done before --declined counted their answer as a refusal, operations that are not in the
// file any more, and operations held or of unknown outcome.
func (d *dryRun) advise() {
	if d.wasDone > 0 {
		terminal.Say(d.streams.Err, "%d of the declined were done, or accepted, before this --declined: look at their answers, and ask the API what came of those accepted; --generation %d sends them once more, and only with --yes", d.wasDone, d.plan.generation+1)
	}
	if d.hidden > 0 {
		terminal.Say(d.streams.Err, "%d of the declined were sent more than once, and an earlier send may have taken effect: ask the API about them; --generation %d sends them once more, and only with --yes", d.hidden, d.plan.generation+1)
	}
	if d.left.gone > 0 {
		terminal.Say(d.streams.Err, "%s", d.left.text(d.session.Place.Shell(), false))
	}
	if d.classes[results.ClassHeld]+d.classes[results.ClassUnknown] > d.ended {
		terminal.Say(d.streams.Err, "held or pending: oncehttp journal stuck --journal %s", d.session.Place.Shell())
	}
	if d.ended > 0 {
		terminal.Say(d.streams.Err, "%d of the unknown have ended, and nothing more is sent: oncehttp journal show KEY --journal %s", d.ended, d.session.Place.Shell())
	}
}
