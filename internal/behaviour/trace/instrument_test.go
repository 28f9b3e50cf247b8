package trace

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// spannedServer is a server that notes the span in the context of each request.
type spannedServer struct {
	server
	spans []*clienttest.Span
	at    func(*http.Request) // called before each answer; nil: nothing
}

func (s *spannedServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.spans = append(s.spans, clienttest.SpanIn(req.Context()))
	if s.at != nil {
		s.at(req)
	}
	return s.server.RoundTrip(req)
}

// shapes returns the spans as text: each with the number of its parent, how it ended, and its attempt's number and sends before.
func shapes(t *testing.T, all []*clienttest.Span) string {
	t.Helper()
	var lines []string
	for _, s := range all {
		line := s.Name + ":"
		for n, p := range all {
			if p == s.Parent {
				line += " in " + string(rune('0'+n))
			}
		}
		line += " " + string(s.Begins.Kind) + " to " + string(s.Ends.Kind)
		if s.Ends.Outcome != 0 {
			line += " " + s.Ends.Outcome.String()
		}
		if s.Attempt.SendsBefore > 0 {
			line += " resend " + string(rune('0'+s.Attempt.SendsBefore))
		}
		if s.Ends.Err != nil {
			line += " failed"
		}
		if s.Ended != 1 {
			t.Errorf("%s: ended %d times", line, s.Ended)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestSpans: each run of an operation and each attempt begins and ends once, the attempt within the run, and the Transport is called
// within the attempt; in the life that resumes the operation, too.
func TestSpans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j, s, spans := memory.New(), &spannedServer{server: server{statuses: []int{503, 0}}}, &clienttest.Spans{}
		change := func(cfg *oncehttp.Config) {
			cfg.Instrument, cfg.Retry = spans, clienttest.Quick(2)
		}
		c, _ := clienttest.New(t, s, clienttest.On(j, change))
		if _, err := c.DoKey(request(t, nil), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		s.statuses = []int{201}
		time.Sleep(time.Hour)
		clienttest.Pass(t, c)
		want := strings.Join([]string{
			"operation: begun to finished failed", "attempt: in 0 attempt to answered", "attempt: in 0 attempt to answered resend 1 failed",
			"operation: begun to finished confirmed", "attempt: in 3 attempt to answered confirmed resend 2",
		}, "\n")
		if got := shapes(t, spans.All); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		for n, at := range []int{1, 2, 4} {
			if s.spans[n] != spans.All[at] {
				t.Errorf("request %d is sent within %+v, want within span %d", n, s.spans[n], at)
			}
		}
	})
}

// odd is an Instrument with the results of a test.
type odd struct {
	begin func(context.Context) (context.Context, func(oncehttp.Event))
}

func (o odd) Operation(ctx context.Context, _ oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return o.begin(ctx)
}

func (o odd) Attempt(ctx context.Context, _ oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return o.begin(ctx)
}

// TestOddInstrument: whatever an Instrument does wrong, the operation has its answer, and the log says so where something is not used.
func TestOddInstrument(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		begin func(context.Context) (context.Context, func(oncehttp.Event))
		says  string
	}{
		"a panic": {func(context.Context) (context.Context, func(oncehttp.Event)) { panic("secret") }, "Config.Instrument has crashed"},
		"a panic at the end": {func(ctx context.Context) (context.Context, func(oncehttp.Event)) {
			return ctx, func(oncehttp.Event) { panic("secret") }
		}, "Config.Instrument has crashed"},
		"nothing": {func(context.Context) (context.Context, func(oncehttp.Event)) { return nil, nil }, ""},
		"another context": {func(context.Context) (context.Context, func(oncehttp.Event)) {
			return context.Background(), nil
		}, "not derived from its own"},
		"an ended context": {func(ctx context.Context) (context.Context, func(oncehttp.Event)) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &clienttest.Log{}
			c, _ := clienttest.New(t, &spannedServer{server: server{statuses: []int{201}}}, clienttest.On(memory.New(), func(cfg *oncehttp.Config) {
				cfg.Instrument, cfg.Logger = odd{row.begin}, log.Logger()
			}))
			if resp, err := c.DoKey(request(t, nil), "k"); err != nil || resp.StatusCode != 201 {
				t.Error(err)
			}
			if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
				t.Errorf("it is %v", rec.State)
			}
			if !log.Has(row.says) || row.says == "" && log.Lines() > 0 || log.Has("secret") {
				t.Errorf("the log is %q, want %q", log, row.says)
			}
		})
	}
}

// TestSpansEndAfterACrash: where the Transport panics, the attempt and the run end, with an error.
func TestSpansEndAfterACrash(t *testing.T) {
	t.Parallel()
	spans := &clienttest.Spans{}
	s := &spannedServer{server: server{statuses: []int{201}}, at: func(*http.Request) { panic("broken") }}
	c, _ := clienttest.New(t, s, clienttest.On(memory.New(), func(cfg *oncehttp.Config) { cfg.Instrument = spans }))
	func() {
		defer func() { _ = recover() }()
		_, _ = c.DoKey(request(t, nil), "k")
	}()
	if got := shapes(t, spans.All); got != "operation: begun to left failed\nattempt: in 0 attempt to answered failed" {
		t.Error(got)
	}
}

// TestCallerEndsAnInstrumentedSend: whoever gives up ends the send with its cause, also where the Instrument has ended its own context.
func TestCallerEndsAnInstrumentedSend(t *testing.T) {
	t.Parallel()
	why, ended := errors.New("tired"), make(chan error, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &spannedServer{server: server{statuses: []int{201}}, at: func(req *http.Request) {
		cancel(why)
		<-req.Context().Done()
		ended <- context.Cause(req.Context())
	}}
	endsItsOwn := func(ctx context.Context) (context.Context, func(oncehttp.Event)) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, nil
	}
	c, _ := clienttest.New(t, s, clienttest.On(memory.New(), func(cfg *oncehttp.Config) { cfg.Instrument = odd{endsItsOwn} }))
	_, _ = c.DoKey(request(t, nil).WithContext(ctx), "k") // the answer may come all the same
	if cause := <-ended; !errors.Is(cause, why) {
		t.Errorf("the send ends with %v", cause)
	}
}

// TestNilInstrument: a nil pointer is refused.
func TestNilInstrument(t *testing.T) {
	t.Parallel()
	_, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Instrument: (*clienttest.Spans)(nil)})
	if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "the Instrument is a nil *clienttest.Spans") {
		t.Error(err)
	}
}
