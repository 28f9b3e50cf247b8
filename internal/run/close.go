package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// This file holds the end of a client: visits counts the calls under way, and Close waits for them.

// ErrStillRunning is oncehttp.ErrStillRunning.
var ErrStillRunning = errors.New("still running")

// visits counts a client's public calls under way, by name, and the user's functions running in them. It is safe for concurrent use.
type visits struct {
	mu     sync.Mutex
	closed bool                     // no call enters any more
	n      int                      // calls under way
	calls  map[string]int           // the same, by name, for the error of Close
	guests map[string]*atomic.Int64 // made by guest
	empty  chan struct{}            // closed once the client is closed and no call is under way
}

// newVisits returns the counts of a new client, all zero.
func newVisits() *visits {
	return &visits{calls: map[string]int{}, guests: map[string]*atomic.Int64{}, empty: make(chan struct{})}
}

// enter counts a call, so that Close waits for it; false if the client is closed. After true, leave must follow.
func (v *visits) enter(call string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.n++
	v.calls[call]++
	return true
}

// stay counts one more call, also of a closed client, so that Close waits for it. Its caller has entered and not
// left; else the client could be over already. leave must follow.
func (v *visits) stay(call string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n++
	v.calls[call]++
}

// leave ends one enter or stay of the same call, a name for errors. The last leave of a closed client lets Close go on.
func (v *visits) leave(call string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n--
	v.calls[call]--
	if v.closed && v.n == 0 {
		close(v.empty)
	}
}

// close lets nobody enter any more. It returns false if it was called before.
func (v *visits) close() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.closed = true
	if v.n == 0 {
		close(v.empty)
	}
	return true
}

// isClosed reports whether the client was closed: from then on no new call is let in.
func (v *visits) isClosed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}

// guest returns the count of the running calls of one function of the user, such as Config.Authorize. Close names such a function if it does not
// return.
func (v *visits) guest(name string) *atomic.Int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.guests[name] == nil {
		v.guests[name] = &atomic.Int64{}
	}
	return v.guests[name]
}

// begin counts a function of the user (guest names it, for errors) as running, until end.
func (v *visits) begin(guest string) { v.guest(guest).Add(1) }

// end counts the return of a function of the user that begin has counted.
func (v *visits) end(guest string) { v.guest(guest).Add(-1) }

// left returns the sorted names of the user's running functions, with guests true; if there are none, the names of
// the calls under way. No names: nothing runs.
func (v *visits) left() (names []string, guests bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, running := range v.guests {
		if running.Load() > 0 {
			names = append(names, name)
		}
	}
	if guests = len(names) > 0; !guests {
		for name, underWay := range v.calls {
			if underWay > 0 {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, guests
}

// loopBody wraps yield, the body of a loop over the results of a method of this name, and counts it while it runs.
func loopBody[T any](v *visits, method string, yield func(T, error) bool) func(T, error) bool {
	name := "the body of a loop over " + method
	return func(t T, err error) bool {
		v.begin(name)
		defer v.end(name)
		return yield(t, err)
	}
}

// errNoNewKey refuses a request without a key, made through a closed client. Its NewKey might name an operation in the journal.
var errNoNewKey = request.UnreadKey{Cause: errors.New("the client is closed, and NewKey is not called any more")}

// visit enters a call of this name. within is for the call's work: it ends with ctx at the latest, and when Close
// cuts the work. leave must be called once, unless err is set. Errors: ErrConfig and ErrClosed.
func (c *Client) visit(ctx context.Context, call string) (within context.Context, leave func(), err error) {
	if cause := unusable(ctx, c); cause != nil {
		return ctx, nil, fmt.Errorf("%w: %w", ErrConfig, cause)
	}
	if !c.visits.enter(call) {
		return ctx, nil, ErrClosed
	}
	within, cancel := context.WithCancelCause(inflight.WithoutKey(ctx))
	stop := context.AfterFunc(c.cutting, func() { cancel(ErrClosed) })
	return within, func() {
		stop()
		cancel(nil)
		c.visits.leave(call)
	}, nil
}

// enter counts a call of this name, if it can begin; then leave of visits must follow.
func (c *Client) enter(call string) bool {
	return unusable(context.Background(), c) == nil && c.visits.enter(call)
}

// visitKey begins a call about one operation: it checks the arguments, and keeps the client open until leave. call is the name that Close gives it if it does
// not end, name that in errors. A closed client is an error. Errors name the operation.
func (c *Client) visitKey(ctx context.Context, call, name string, key string) (within context.Context, leave func(), err error) {
	if err := checkCall(ctx, c, name, key); err != nil {
		return ctx, nil, err
	}
	within, leave, err = c.visit(ctx, call)
	if err != nil {
		err = newError(name, unclear(key), nil, ErrClosed)
	}
	return within, leave, err
}

// ends holds the end of a client: what ends with it, and when.
type ends struct {
	cfg           *Config
	engine        *engine
	visits        *visits // the public calls and the user's functions under way
	ownsJournal   bool    // Open opened the journal, Close closes it
	ownsTransport bool    // Config.Transport was nil, Close closes its idle connections

	// draining ends the waits between attempts: every call stops after
	// the attempt on the wire.
	draining context.Context
	drain    context.CancelCauseFunc // ends draining
	cutting  context.Context         // ends when Close cuts the work under way
	cut      context.CancelCauseFunc // ends cutting

	closeOnce sync.Once     // of the first Close; the others wait for over
	closing   time.Time     // when Close was called; written by closeOnce
	over      chan struct{} // closed once no call is under way and closeAll has returned
	closeErr  error         // written before over is closed
	renewed   atomic.Bool   // no renewal of leases is under way any more
}

// Close implements oncehttp.Client.Close: it ends the client, and waits for its calls.
func (c *Client) Close() error { return c.shutdown(context.Background(), "close") }

// Shutdown implements oncehttp.Client.Shutdown: it is Close with an end of the wait by ctx.
func (c *Client) Shutdown(ctx context.Context) error { return c.shutdown(ctx, "shutdown") }

// closeGrace is the duration of Close's wait for functions of the user after the cut.
const closeGrace = time.Second

// shutdown begins the end of the client, if it has not begun, and waits for it. It may be called at once by several
// callers. name is the call's, for errors.
func (c *Client) shutdown(ctx context.Context, name string) error {
	if cause := unusable(ctx, c); cause != nil {
		return fmt.Errorf("oncehttp: %s: %w: %w", name, ErrConfig, cause)
	}
	c.begin(c)
	return c.wait(ctx, name)
}

// wait waits for the end of the client, and returns its error; if ctx ends before, the cause of ctx. An end that is there counts more than an ended ctx. A function
// of the user that still runs after AttemptTimeout and closeGrace is ErrStillRunning; other work has a second AttemptTimeout. Until the leases are closed (renewed),
// their renewal counts as such work. The end then goes on without a caller, and a later shutdown may wait for it. name is the call's, for errors.
func (e *ends) wait(ctx context.Context, name string) error {
	timeout := e.cfg.Retry.AttemptTimeout
	late := time.NewTimer(time.Until(e.closing.Add(timeout + closeGrace)))
	defer late.Stop()
	for last := false; ; last = true {
		select {
		case <-e.over:
			return e.closeErr
		default:
		}
		select {
		case <-e.over:
			return e.closeErr
		case <-ctx.Done():
			return fmt.Errorf("oncehttp: %s: %w", name, sanitize.Cause(ctx))
		case <-late.C:
		}
		names, guests := e.visits.left()
		if len(names) == 0 && !e.renewed.Load() { // closeAll waits for it
			names = []string{"Renew of the journal"}
		}
		if len(names) > 0 && (guests || last) {
			return fmt.Errorf("oncehttp: %s: %w: %s", name, ErrStillRunning, strings.Join(names, ", "))
		}
		late.Reset(max(time.Until(e.closing.Add(2*timeout+closeGrace)), closeGrace))
	}
}

// begin begins the end of the client, once, and does not wait. No call begins any more, waits between attempts
// end at once, and attempts on the wire have an AttemptTimeout before they are cut. over is closed at the end.
func (e *ends) begin(client *Client) {
	e.drain(ErrClosed)
	e.closeOnce.Do(func() {
		e.closing = time.Now()
		cut := time.AfterFunc(e.cfg.Retry.AttemptTimeout, func() {
			e.engine.shared.calls.GiveUpDraining(client)
			e.cut(ErrClosed)
		})
		e.visits.close()
		go func() {
			<-e.visits.empty
			cut.Stop()
			e.closeErr = e.closeAll()
			close(e.over)
		}()
	})
}

// closeAll closes the leases, then the client's own Transport and journal. It is called once, when no call is under way. From then on no renewal of a lease is
// under way (renewed). The error is the journal's.
func (e *ends) closeAll() error {
	e.engine.leases.Close()
	e.renewed.Store(true)
	if idle, can := e.cfg.Transport.(interface{ CloseIdleConnections() }); can && e.ownsTransport {
		idle.CloseIdleConnections()
	}
	if !e.ownsJournal {
		return nil
	}
	err := e.cfg.Journal.Close()
	if err != nil {
		e.cfg.log(context.Background(), slog.LevelError, "journal did not close", "", err)
	}
	return err
}
