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
)

// This file holds the end of a client: visits counts the calls under way, and Close waits for them.

// ErrStillRunning is oncehttp.ErrStillRunning.
var ErrStillRunning = errors.New("still running")

// visits counts a client's public calls under way, by name, and the user's functions running in them. It is safe for concurrent use.
type visits struct {
	mu     sync.Mutex
	closed bool
	n      int
	calls  map[string]int
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

// leave ends one enter or stay of the same name. The last leave of a closed client lets Close go on.
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

// isClosed reports whether close was called.
func (v *visits) isClosed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}

// guest returns the count of the running calls of a function of the user, made at the first use of the name.
func (v *visits) guest(name string) *atomic.Int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.guests[name] == nil {
		v.guests[name] = &atomic.Int64{}
	}
	return v.guests[name]
}

// begin counts a function of the user as running, until end.
func (v *visits) begin(guest string) { v.guest(guest).Add(1) }

// end counts the return of the function.
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
	if cause := c.unusable(ctx); cause != nil {
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
	return c.unusable(context.Background()) == nil && c.visits.enter(call)
}

// visitKey is visit for a call about one operation; its errors name the operation.
func (c *Client) visitKey(ctx context.Context, call, name string, key string) (within context.Context, leave func(), err error) {
	if err := c.checkCall(ctx, name, key); err != nil {
		return ctx, nil, err
	}
	within, leave, err = c.visit(ctx, call)
	if err != nil {
		err = newError(name, unclear(key), nil, ErrClosed)
	}
	return within, leave, err
}

// Close is oncehttp.Client.Close.
func (c *Client) Close() error { return c.shutdown(context.Background(), "close") }

// Shutdown is oncehttp.Client.Shutdown.
func (c *Client) Shutdown(ctx context.Context) error { return c.shutdown(ctx, "shutdown") }

// closeGrace is the duration of Close's wait for functions of the user after the cut.
const closeGrace = time.Second

// shutdown begins the end of the client, if it has not begun, and waits for it. If a function of the user does not
// return in time, it gives up with ErrStillRunning; the end goes on without a caller, and a later shutdown may
// wait for it. It may be called at once by several callers. name is the call's, for errors.
func (c *Client) shutdown(ctx context.Context, name string) error {
	if cause := c.unusable(ctx); cause != nil {
		return fmt.Errorf("oncehttp: %s: %w: %w", name, ErrConfig, cause)
	}
	c.beginEnd()
	timeout := c.cfg.Retry.AttemptTimeout
	late := time.NewTimer(time.Until(c.closing.Add(timeout + closeGrace)))
	defer late.Stop()
	for last := false; ; last = true {
		select {
		case <-c.over:
			return c.closeErr
		default:
		}
		select {
		case <-c.over:
			return c.closeErr
		case <-ctx.Done():
			return fmt.Errorf("oncehttp: %s: %w", name, context.Cause(ctx))
		case <-late.C:
		}
		names, guests := c.visits.left()
		if len(names) == 0 && !c.renewed.Load() { // closeAll waits for it
			names = []string{"Renew of the journal"}
		}
		if len(names) > 0 && (guests || last) {
			return fmt.Errorf("oncehttp: %s: %w: %s", name, ErrStillRunning, strings.Join(names, ", "))
		}
		late.Reset(max(time.Until(c.closing.Add(2*timeout+closeGrace)), closeGrace))
	}
}

// beginEnd begins the end of the client, once, and does not wait. No call begins any more, waits between attempts
// end at once, and attempts on the wire have an AttemptTimeout before they are cut. over is closed at the end.
func (c *Client) beginEnd() {
	c.drain(ErrClosed)
	c.closeOnce.Do(func() {
		c.closing = time.Now()
		cut := time.AfterFunc(c.cfg.Retry.AttemptTimeout, func() {
			c.engine.shared.calls.GiveUpDraining(c)
			c.cut(ErrClosed)
		})
		c.visits.close()
		go func() {
			<-c.visits.empty
			cut.Stop()
			c.closeErr = c.closeAll()
			close(c.over)
		}()
	})
}

// closeAll closes the leases, then the client's own Transport and journal. It is called once, when no call is
// under way. The error is the journal's.
func (c *Client) closeAll() error {
	c.engine.leases.Close()
	c.renewed.Store(true)
	if idle, can := c.cfg.Transport.(interface{ CloseIdleConnections() }); can && c.ownsTransport {
		idle.CloseIdleConnections()
	}
	if !c.ownsJournal {
		return nil
	}
	err := c.cfg.Journal.Close()
	if err != nil {
		c.cfg.log(context.Background(), slog.LevelError, "journal did not close", "", err)
	}
	return err
}
