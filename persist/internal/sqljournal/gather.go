package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Together is a Dialect that writes several rows with one statement. Each method is one
// transaction, and waits for another's lock no longer than a fraction of a second: whoever
// is not served goes on alone.
type Together interface {
	// BeginAll inserts the rows whose IDs do not exist, as Begin does, and sets Seq of
	// those that it inserted.
	BeginAll(ctx context.Context, conn *sql.Conn, rows []*Row) error
	// ChangeAll changes the rows that are unfinished and current, see ChangeColumns, and adds
	// one to their revisions. It returns the tokens of those that it is known to have changed.
	ChangeAll(ctx context.Context, conn *sql.Conn, rows []*Row) (tokens [][]byte, err error)
}

// ChangeCompared is how many of ChangeColumns a row must have as they are, Seq only if it is
// not null.
const ChangeCompared = 5

// ChangeColumns are what ChangeAll compares, and then what it sets.
func ChangeColumns() []Column {
	return []Column{
		{"id", 'b'}, {"seq", 'i'}, {"revision", 'i'}, {"created", 'i'}, {"fingerprint", 'b'},
		{"token", 'b'}, {"state", 'i'}, {"unreported", 'i'}, {"swept", 'i'}, {"next_attempt", 'i'},
		{"finished", 'i'}, {"lease_owner", 'b'}, {"lease_until", 'i'}, {"progress", 'b'}, {"answer", 'b'},
	}
}

// ChangeValues are the row's values, in the order of ChangeColumns.
func (r *Row) ChangeValues() []any {
	return append([]any{r.ID, r.Seq, r.Revision, r.Created, r.Fingerprint}, r.changed()...)
}

// The bounds of one statement for several rows.
const (
	gatherRows  = 128
	gatherBytes = 1 << 20 // of bodies and answers, after which no further row is added
	// gatherSlots is how many such statements run at once. With one, everybody waits for two
	// commits; with many, each statement serves few.
	gatherSlots = 2
)

// errAlone tells repeat to make the write for this row alone.
var errAlone = errors.New("not served together with others")

// errPanicked is what the others get where the driver panics in the goroutine of the one who runs the statement.
var errPanicked = errors.New("the driver panicked in a statement for several")

// gather lets calls that come at once share a statement: who finds a free slot runs it for
// all who wait. Nobody waits for others to come.
type gather struct {
	j     *Journal
	reads bool // it changes nothing, so that it may end with the context of a lone call
	run   func(ctx context.Context, conn *sql.Conn, rows []*Row) (served func(*Row) bool, err error)

	mu      sync.Mutex
	waiting []*sharer
	busy    int // slots
}

// sharer is one call in a gather.
type sharer struct {
	row  *Row
	turn chan turn // gets one
}

// turn ends a sharer's wait: it runs the next statement, or has been served.
type turn struct {
	lead bool
	kind Doubt
	err  error
}

// first is the first try of a statement for the row; nil if there is no gather.
func (g *gather) first(row *Row) firstTry {
	if g == nil {
		return nil
	}
	return func(ctx, limited context.Context) (Doubt, error) { return g.try(ctx, limited, row) }
}

// try makes one try, together with others. Its results are those of Journal.try; errAlone:
// the row is not served, for a reason that a try alone finds.
func (g *gather) try(ctx, limited context.Context, row *Row) (Doubt, error) {
	me := &sharer{row: row, turn: make(chan turn, 1)}
	if g.enter(me) {
		return g.lead(ctx, me)
	}
	var t turn
	select {
	case t = <-me.turn:
	case <-ctx.Done():
		if g.leave(me) {
			return Undone, ctx.Err()
		}
		t = <-me.turn
	case <-limited.Done():
		if g.leave(me) {
			return NotSent, fmt.Errorf("%w: %w", errNoConnection, limited.Err())
		}
		t = <-me.turn
	}
	if t.lead {
		return g.lead(ctx, me)
	}
	return t.kind, t.err
}

// enter takes a slot, or joins those who wait.
func (g *gather) enter(me *sharer) (lead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy < gatherSlots {
		g.busy++
		return true
	}
	g.waiting = append(g.waiting, me)
	return false
}

// leave ends the wait of a call that nobody has served yet. It returns false if somebody has.
func (g *gather) leave(me *sharer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, s := range g.waiting {
		if s == me {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// lead runs the statement for me and for those who wait, and hands the slot on. A panic of the driver goes on here, and
// nobody waits for ever because of it.
func (g *gather) lead(ctx context.Context, me *sharer) (Doubt, error) {
	batch := g.take(me)
	rows := make([]*Row, len(batch))
	for i, s := range batch {
		rows[i] = s.row
	}
	var served func(*Row) bool
	depended := len(batch) > 1 // then the statement does not end with the context of one
	limited := context.WithoutCancel(ctx)
	if g.reads && !depended {
		limited = ctx
	}
	kind, err := InDoubt, errPanicked
	result := func(row *Row) (Doubt, error) {
		switch {
		case err == nil && served(row):
			return Undone, nil
		case err == nil || kind == Undone || kind == Again: // of whichever row
			return Again, errAlone
		case depended && errors.Is(err, errNoConnection): // one connection that fails is not the end of all
			return NotSent, errAlone
		}
		return kind, err
	}
	defer func() {
		g.handOn()
		for _, s := range batch[1:] {
			kind, err := result(s.row)
			s.turn <- turn{kind: kind, err: err}
		}
	}()
	kind, err = g.j.try(ctx, limited, depended, func(ctx context.Context, conn *sql.Conn, _ bool) (err error) {
		served, err = g.run(ctx, conn, rows)
		return err
	})
	return result(me.row)
}

// take takes the next batch: me, and of those who wait as many as fit.
func (g *gather) take(me *sharer) []*sharer {
	g.mu.Lock()
	defer g.mu.Unlock()
	batch, size := []*sharer{me}, me.row.size()
	for len(g.waiting) > 0 && len(batch) < gatherRows && size < gatherBytes {
		batch, size = append(batch, g.waiting[0]), size+g.waiting[0].row.size()
		g.waiting = g.waiting[1:]
	}
	return batch
}

// handOn gives the slot to one who waits, or frees it.
func (g *gather) handOn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy--
		return
	}
	g.waiting[0].turn <- turn{lead: true}
	g.waiting = g.waiting[1:]
}

// getAll is the statement of the gather of Get. Each of the rows has only an ID, and is filled.
// Of several with one ID the first is served, as no two callers may share a body.
func (j *Journal) getAll(ctx context.Context, conn *sql.Conn, rows []*Row) (served func(*Row) bool, err error) {
	var ids []any
	waiting := make(map[string]*Row, len(rows))
	for _, row := range slices.Backward(rows) {
		ids, waiting[string(row.ID)] = append(ids, row.ID), row
	}
	for len(ids)&(len(ids)-1) != 0 { // so that there are few different statements
		ids = append(ids, ids[0])
	}
	query := j.d.Rebind("SELECT " + columnList("") + " FROM " + j.d.Records() + " WHERE id IN (?" + strings.Repeat(", ?", len(ids)-1) + ")")
	result, err := conn.QueryContext(ctx, query, ids...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	filled := map[*Row]bool{}
	for result.Next() {
		var row Row
		if err := result.Scan(row.Dest()...); err != nil {
			return nil, err
		}
		if to := waiting[string(row.ID)]; to != nil {
			*to, filled[to] = row, true
		}
	}
	return func(r *Row) bool { return filled[r] }, result.Err()
}

// beginAll is the statement of the gather of Begin.
func beginAll(d Together) func(context.Context, *sql.Conn, []*Row) (func(*Row) bool, error) {
	return func(ctx context.Context, conn *sql.Conn, rows []*Row) (func(*Row) bool, error) {
		err := d.BeginAll(ctx, conn, rows)
		return func(r *Row) bool { return r.Seq.Valid }, err
	}
}

// changeAll is the statement of the gather of Update and Finish.
func changeAll(d Together) func(context.Context, *sql.Conn, []*Row) (func(*Row) bool, error) {
	return func(ctx context.Context, conn *sql.Conn, rows []*Row) (func(*Row) bool, error) {
		tokens, err := d.ChangeAll(ctx, conn, rows)
		changed := make(map[string]bool, len(tokens))
		for _, t := range tokens {
			changed[string(t)] = true
		}
		return func(r *Row) bool { return changed[string(r.Token)] }, err
	}
}
