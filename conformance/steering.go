package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// steering is how the suite tells the server to be slow, to fail or to crash, and
// how it counts effects: through the queries and the witness that the options name
// (remote), or through a handler of its own (ownHandler).
type steering interface {
	// ownsHandler reports whether the handler is the suite's own.
	ownsHandler() bool
	// hold makes the operation slow. The suite's own handler waits until the gate
	// is released; another server is asked to wait for d.
	hold(op *operation, d time.Duration) *gate
	// fail makes the operation answer this status. times bounds how often, with the
	// suite's own handler; 0 means always.
	fail(op *operation, status, times int)
	// crash makes the operation's handler crash. The suite's own handler crashes
	// once, before the effect, or after it with afterEffect.
	crash(op *operation, afterEffect bool)
	// effects counts the effects of a reference. WitnessInferred means that
	// there is no counter: n is 0 and says nothing.
	effects(ctx context.Context, ref string) (int, Witness, error)
}

// gate holds one operation back.
type gate struct {
	entered chan struct{} // closed when its effect begins; nil: it cannot be known
	open    func()
}

// release lets it go on. Releasing twice is allowed.
func (g *gate) release() {
	if g.open != nil {
		g.open()
	}
}

// remote steers a server behind a URL.
type remote struct {
	o      *Options
	client *http.Client
	host   string
}

// newRemote returns the steering of the server at host.
func newRemote(o *Options, host string, dial dialFunc) *remote {
	return &remote{o: o, host: host, client: &http.Client{
		Timeout:   o.AnswerTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: o.Parallel, DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it could lead away from the hosts that are allowed
		},
	}}
}

func (s *remote) ownsHandler() bool { return false }

func (s *remote) hold(op *operation, d time.Duration) *gate {
	if s.o.DelayQuery != "" {
		op.addQuery(strings.ReplaceAll(s.o.DelayQuery, "{ms}", strconv.FormatInt(d.Milliseconds(), 10)))
	}
	return &gate{}
}

func (s *remote) fail(op *operation, status, _ int) {
	op.failing = status
	op.addQuery(strings.ReplaceAll(s.o.FailQuery, "{status}", strconv.Itoa(status)))
}

func (s *remote) crash(op *operation, _ bool) { op.addQuery(s.o.CrashQuery) }

func (s *remote) effects(ctx context.Context, ref string) (int, Witness, error) {
	if s.o.Witness == "" {
		return 0, WitnessInferred, nil
	}
	address, pointer, _ := strings.Cut(s.o.Witness, "#")
	pointer = strings.ReplaceAll(pointer, "{ref}", ref)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.ReplaceAll(address, "{ref}", url.QueryEscape(ref)), nil)
	if err != nil {
		return 0, WitnessNone, fmt.Errorf("conformance: witness: %w", err)
	}
	if request.URL.Host == s.host {
		for name, values := range s.o.Header {
			request.Header[name] = values
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, WitnessNone, fmt.Errorf("conformance: witness: %s", errorText(err))
	}
	defer func() { _ = response.Body.Close() }() // it was read as far as it is of use
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return 0, WitnessNone, fmt.Errorf("conformance: witness: %s", errorText(err))
	}
	if response.StatusCode == http.StatusNotFound {
		return 0, WitnessCounted, nil // nothing is known of that reference
	}
	if response.StatusCode != http.StatusOK {
		return 0, WitnessNone, fmt.Errorf("conformance: witness: it answered %d", response.StatusCode)
	}
	return countOf(body, pointer)
}

// countOf reads a number, or the length of a list.
func countOf(body []byte, pointer string) (int, Witness, error) {
	node, found := lookup(body, pointer)
	if !found {
		return 0, WitnessNone, fmt.Errorf("conformance: witness: nothing stands at %q of its answer", pointer)
	}
	switch v := node.(type) {
	case json.Number:
		n, err := strconv.Atoi(v.String())
		if err == nil && n >= 0 {
			return n, WitnessCounted, nil
		}
	case []any:
		return len(v), WitnessListed, nil
	case nil:
		return 0, WitnessListed, nil // an empty list, as some languages write it
	}
	return 0, WitnessNone, fmt.Errorf("conformance: witness: what stands at %q is neither a number nor a list", pointer)
}
