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

// steering makes operations slow or failing, and counts effects: by the queries and the
// witness in the options (remote), or in the suite's own handler (ownHandler). hold, fail and
// crash must come before the operation is first sent. Implementations are safe for concurrent
// use with different operations.
type steering interface {
	// ownsHandler reports whether the handler is the suite's own.
	ownsHandler() bool
	// hold makes the operation slow, and changes op. The suite's own handler waits until the
	// caller releases the gate; another server is asked to wait for d. The gate is never nil.
	hold(op *operation, d time.Duration) *gate
	// fail makes the operation answer this status, and changes op. times bounds the number of
	// failures, for the suite's own handler only; 0 means always.
	fail(op *operation, status, times int)
	// crash makes the operation's handler crash. The suite's own handler crashes once, after
	// the effect if afterEffect is true, else before it. Another server decides both itself.
	crash(op *operation, afterEffect bool)
	// effects returns the number of effects of a reference. With WitnessInferred there is no
	// counter, and the number is 0 and means nothing. With an error nothing is known.
	effects(ctx context.Context, ref string) (int, Witness, error)
}

// gate holds one operation back. The zero value is a gate that is always open. Its maker's
// caller must release it.
type gate struct {
	entered chan struct{} // closed when the handler is at work; nil: only the time tells
	open    func()        // lets the handler go on; nil: it goes on by itself
}

// release lets the request go on that the suite holds at work in the server. Later calls do nothing.
func (g *gate) release() {
	if g.open != nil {
		g.open()
	}
}

// remote steers a server behind a URL by its queries, and asks its witness.
type remote struct {
	o      *Options
	client *http.Client
	host   string
}

// newRemote returns the means to make operations of the server at host (host:port) slow or fail, and to ask for their effects. The caller closes the
// client's idle connections. o must not be nil; it is read on every call.
func newRemote(o *Options, host string, dial dialFunc) *remote {
	return &remote{o: o, host: host, client: &http.Client{
		Timeout:   o.AnswerTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: o.Parallel, DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // it could lead away from the hosts that are allowed
		},
	}}
}

// ownsHandler is false: the server runs elsewhere.
func (s *remote) ownsHandler() bool { return false }

// hold makes an operation slow by a parameter in its query, if the target has one for this. The returned gate cannot tell when the operation is at
// work: callers wait for a part of d instead.
func (s *remote) hold(op *operation, d time.Duration) *gate {
	if s.o.DelayQuery != "" {
		op.addQuery(strings.ReplaceAll(s.o.DelayQuery, "{ms}", strconv.FormatInt(d.Milliseconds(), 10)))
	}
	return &gate{}
}

// fail makes an operation fail with this status, by a parameter in its query. It fails each time: the number of times cannot be told to a remote
// server.
func (s *remote) fail(op *operation, status, _ int) {
	op.failing = status
	op.addQuery(strings.ReplaceAll(s.o.FailQuery, "{status}", strconv.Itoa(status)))
}

// crash adds the query that makes the server crash in this request.
func (s *remote) crash(op *operation, _ bool) { op.addQuery(s.o.CrashQuery) }

// effects asks the witness (a URL that counts effects) for the count of a reference. The Witness in the result is the way of counting: WitnessInferred
// without a witness, by answers alone. Options.Header goes along only if the witness is on the target's own host. 404 means no effect; any other
// status but 200 is an error.
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

// countOf reads the count at a JSON pointer of a witness's answer: a number (WitnessCounted), or the length of a list (WitnessListed); null is an
// empty list. Anything else is an error.
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
