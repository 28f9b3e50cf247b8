package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
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

// stay counts one more call, also of a closed client. Its caller has entered and not left.
func (v *visits) stay(call string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n++
	v.calls[call]++
}

// leave ends enter or stay.
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

// guest returns the count of the running calls of a function of the user.
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

// left returns the names of the user's running functions, with guests true; if there are none, the names of the calls under way.
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

// countNewKey has NewKey counted while it runs, and refused once the client is closed. The NewKey of KeyFromJSON only reads, so it is never
// refused. countNewKey is called after fill, since fill inspects NewKey.
func (c *Config) countNewKey(v *visits) {
	f, ours := c.reader.NewKey, c.ReadsKey
	if c.randomKeys {
		return
	}
	c.reader.NewKey = func(req *http.Request) (string, bool, error) {
		if !ours && v.isClosed() {
			return "", false, errNoNewKey
		}
		v.begin("Config.NewKey")
		defer v.end("Config.NewKey")
		return f(req)
	}
}

// countVisits has the other functions of the Config counted while they run.
func (c *Config) countVisits(v *visits) {
	if f := c.Token; f != nil {
		c.Token = func(ctx context.Context, rec persist.Record) (string, error) {
			v.begin("Config.Token")
			defer v.end("Config.Token")
			return f(ctx, rec)
		}
	}
	if f := c.Authorize; f != nil {
		c.Authorize = func(req *http.Request) error {
			v.begin("Config.Authorize")
			defer v.end("Config.Authorize")
			return f(req)
		}
	}
	if f := c.Reconcile; f != nil {
		c.Reconcile = func(ctx context.Context, rec persist.Record) (Resolution, error) {
			v.begin("Config.Reconcile")
			defer v.end("Config.Reconcile")
			return f(ctx, rec)
		}
	}
	if f := c.OnResult; f != nil {
		c.OnResult = func(ctx context.Context, rec persist.Record) error {
			v.begin("Config.OnResult")
			defer v.end("Config.OnResult")
			return f(ctx, rec)
		}
	}
	if f := c.Observe; f != nil {
		running := v.guest("Config.Observe")
		c.Observe = func(ctx context.Context, e *Event) {
			running.Add(1)
			defer running.Add(-1)
			f(ctx, e)
		}
	}
	c.instrumenting = v.guest("Config.Instrument")
	c.countMoreVisits(v)
}

// countMoreVisits is countVisits for the functions expected to call nobody.
func (c *Config) countMoreVisits(v *visits) {
	if f := c.Operation; f != nil {
		c.Operation = func(req *http.Request) bool {
			v.begin("Config.Operation")
			defer v.end("Config.Operation")
			return f(req)
		}
	}
	if f := c.KeepHeader; f != nil {
		c.KeepHeader = func(name string) bool {
			v.begin("Config.KeepHeader")
			defer v.end("Config.KeepHeader")
			return f(name)
		}
	}
	if f := c.ProfileOf; f != nil {
		c.ProfileOf = func(rec persist.Record) *profile.Profile {
			v.begin("Config.ProfileOf")
			defer v.end("Config.ProfileOf")
			return f(rec)
		}
	}
	if f := c.OriginAllowed; f != nil {
		c.OriginAllowed = func(origin string) bool {
			v.begin("Config.OriginAllowed")
			defer v.end("Config.OriginAllowed")
			return f(origin)
		}
	}
	if f := c.Limiter; f != nil {
		c.Limiter = func(origin string) Limiter {
			v.begin("Config.Limiter")
			defer v.end("Config.Limiter")
			limiter := f(origin)
			if limiter == nil || isNil(limiter) {
				return limiter
			}
			return countedLimiter{limiter, v}
		}
	}
}

// countedLimiter is a limiter of the user's.
type countedLimiter struct {
	Limiter
	visits *visits
}

// Wait waits by the user's limiter.
func (l countedLimiter) Wait(ctx context.Context) error {
	l.visits.begin("the Wait of a Limiter")
	defer l.visits.end("the Wait of a Limiter")
	return l.Limiter.Wait(ctx)
}

// counted returns a Transport with its sends counted. A Transport of net/http heeds its context and stays as it is.
func counted(rt http.RoundTripper, v *visits) http.RoundTripper {
	if _, std := rt.(*http.Transport); std {
		return rt
	}
	return countedTransport{rt, v}
}

// countedTransport is a Transport of the user's.
type countedTransport struct {
	http.RoundTripper
	visits *visits
}

// uncounted returns the Transport given to counted.
func uncounted(rt http.RoundTripper) http.RoundTripper {
	if c, is := rt.(countedTransport); is {
		return c.RoundTripper
	}
	return rt
}

// RoundTrip sends by the user's Transport.
func (t countedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.visits.begin("Config.Transport")
	defer t.visits.end("Config.Transport")
	return t.RoundTripper.RoundTrip(req)
}

// visit enters a call of this name. The call ends with ctx at the latest, and when Close cuts it. leave must follow, unless err is set.
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

// shutdown begins the end of the client, if nobody has, and waits for it.
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

// beginEnd begins the end of the client, once.
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

// closeAll closes the rest once no call is under way.
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
