package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// exchange is one request under way: its context, the clock that ends it, and the events seen by httptrace. The trace
// events come from goroutines of the transport, also after RoundTrip returned.
type exchange struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wait   time.Duration // bounds each wait
	until  time.Time     // bounds them all, until unbounded; zero: no bound
	timer  *time.Timer

	// unbounded is true once until no longer counts: the answer is judged, and its caller reads on. A clock that ran out at
	// this moment may still ask.
	unbounded atomic.Bool

	target    address // of the request handed to the transport
	transport http.RoundTripper
	sent      *http.Request

	trace httptrace.ClientTrace
	asked connections  // those asked for
	got   atomic.Int32 // connections; more than one if net/http sent again by itself, or the transport asked for others
	below beneath
}

// begin starts an exchange, one request with its answer, and its clock: it ends after wait, or at until if that is set. The caller must call end.
func begin(ctx context.Context, wait time.Duration, until time.Time) *exchange {
	x := &exchange{wait: wait, until: until}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(x.left(), x.expire)
	return x
}

// end stops the clock of the exchange, and cancels its context.
func (x *exchange) end() {
	x.timer.Stop()
	x.cancel(nil)
}

// arm starts the clock for the wait that begins now.
func (x *exchange) arm() { x.timer.Reset(x.left()) }

// left returns how long the exchange may wait from now on: its wait, but not past until.
func (x *exchange) left() time.Duration {
	if !x.bounded() {
		return x.wait
	}
	return min(x.wait, time.Until(x.until))
}

// bounded reports whether the exchange must end at the time until, whatever it waits for.
func (x *exchange) bounded() bool { return !x.until.IsZero() && !x.unbounded.Load() }

// expire is called by the timer. It ends the exchange with the error for the limit that was reached: the end of the whole answer's time, or that of
// one wait.
func (x *exchange) expire() {
	if x.bounded() && !time.Now().Before(x.until) {
		x.cancel(ErrAnswerTimeout)
		return
	}
	x.cancel(ErrAttemptTimeout)
}

// traced returns the context of the exchange's request. With it, the connections for the request are noted: the addresses asked for, and the number had.
// bodyless: the request has no body, and a transport may send it again by itself; x.below notices that.
func (x *exchange) traced(bodyless bool) context.Context {
	x.trace.GetConn = x.asked.add
	x.trace.GotConn = func(httptrace.GotConnInfo) { x.got.Add(1) }
	if bodyless {
		x.below.x = x
		x.below.hook(&x.trace)
	}
	return httptrace.WithClientTrace(x.ctx, &x.trace)
}

// roundTrip hands req to the transport; the context of req is traced. The result obeys the contract of a RoundTripper,
// whatever the transport does: either an error, or a response with headers and a body.
func (x *exchange) roundTrip(transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	x.target, x.transport, x.sent = hostPort(req.URL), transport, req // for isOwn: which addresses are the request's
	resp, err := transport.RoundTrip(req)
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, errNoResponse
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	if resp.Header == nil {
		resp.Header = make(http.Header)
	}
	return resp, nil
}

// reason returns the reason of the exchange's failure: err itself or, if err only says that the context has ended, the cause of that, such as a time
// limit.
func (x *exchange) reason(err error) error {
	if cause := sanitize.Cause(x.ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// provedUnsent reports whether the request's own connection was asked for and not had. One connection was asked for at
// least, and none was had. All of them were to the request's target, or to the proxy of net/http's own transport for it.
// A transport may ask for others under the same context, such as one to an audit log: they prove nothing, and neither does
// a transport without events.
func (x *exchange) provedUnsent() bool {
	if x.got.Load() > 0 {
		return false
	}
	asked := x.asked.all()
	return len(asked) > 0 && !slices.ContainsFunc(asked, func(at string) bool { return !x.isOwn(at) })
}

// isOwn reports whether an address named by httptrace is that of the request, or of the proxy for it.
func (x *exchange) isOwn(at string) bool { return x.target.is(at) || x.proxy().is(at) }

// proxy returns the address of the proxy that an *http.Transport uses for the request; the zero address if it uses none, or for any other transport.
func (x *exchange) proxy() address {
	own, ok := x.transport.(*http.Transport)
	if !ok || own.Proxy == nil {
		return address{}
	}
	proxy, err := own.Proxy(x.sent)
	if err != nil || proxy == nil {
		return address{}
	}
	return hostPort(proxy)
}

// sends returns the number of sends by the exchange. It is one for each connection taken by net/http, since that may have
// sent the request on each of them. It is at least one unless unsent is true.
func (x *exchange) sends(unsent bool) int {
	if unsent {
		return 0
	}
	return max(1, int(x.got.Load()))
}
