package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// sample is a small correct server whose choices can be set, and which can be
// given one bug. It shares no code with the mock, so that what the suite says of
// both does not hang on one reading of the rules.
type sample struct {
	choices
	quirk quirk

	mu      sync.Mutex
	made    int
	entries map[string]*entry
	effects map[string]int
	notes   map[string]any // for quirks
}

// choices are those of which every one is right. The zero value answers 201 with
// an id and a Location, refuses with problem details, does not store errors and
// answers a duplicate in flight 409.
type choices struct {
	quoted   bool // keys are structured-field strings; a bare one is refused
	opaque   bool // keys are taken as they stand, quotes and all
	required bool // a request without a key is refused
	wait     bool // a duplicate in flight waits for the outcome
	keeps    bool // errors are stored
	status   int  // of a success; 0: 201
	busy     int  // of a duplicate in flight; 0: 409
	differs  int  // of another request under the key; 0: 422
	plain    bool // refusals are plain text
	nameless bool // answers hold neither an id nor a Location
	wrapped  bool // a repeat is answered with the first answer inside another object
	updates  bool // PATCH and PUT are served as POST is
	delay    time.Duration
	later    time.Duration // the effect follows its answer by so much
	bodyMax  int
	perBurst int // requests in 100 ms, beyond which 429 is answered; 0: no limit
}

// quirk is what a bug changes. Nil fields change nothing.
type quirk struct {
	// front may answer before the key is looked at.
	front func(c *call) bool
	// key is given what the header says: the key, and whether it is there and good.
	key func(c *call, k labelled) labelled
	// scope and covers are given what a key belongs to, and what it names.
	scope, covers func(c *call, parts []string) []string
	// repeat, pending and other may answer a repeat, a duplicate in flight, and
	// another request under the key.
	repeat, pending, other func(c *call, e *entry) (reply, bool)
	// run executes the request in place of the service.
	run func(c *call) reply
	// keep decides what is stored of an answer: nil for nothing. stuck leaves the
	// key locked.
	keep  func(c *call, r reply) *reply
	stuck func(c *call, r reply) bool
}

// call is one request.
type call struct {
	*sample
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	ref  string
	key  labelled
}

type labelled struct {
	key       string
	there, ok bool
}

type entry struct {
	print string
	over  chan struct{} // closed when it is finished
	reply *reply        // nil while it runs, and when it was released
	born  time.Time
}

type reply struct {
	status int
	header map[string]string
	body   string
}

func newSample(t *testing.T, c choices, q quirk) (*sample, string) {
	s := &sample{choices: c, quirk: q, entries: map[string]*entry{}, effects: map[string]int{}, notes: map[string]any{}}
	return s, serve(t, s)
}

func (s *sample) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_effects" {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, _ = fmt.Fprintf(w, `{"count":%d,"all":%d}`, s.effects[r.URL.Query().Get("ref")], s.made)
		return
	}
	time.Sleep(s.delay)
	body, err := io.ReadAll(r.Body)
	c := &call{sample: s, w: w, r: r, body: body}
	var members struct{ Reference any } // another spelling of the name is read, too, which nobody sends
	if json.Unmarshal(body, &members) == nil {
		c.ref, _ = members.Reference.(string)
	}
	switch {
	case err != nil:
		c.send(c.refusal(http.StatusBadRequest, "cut", "the body did not arrive whole"))
	case s.quirk.front != nil && s.quirk.front(c):
	case s.overrun():
		limited := c.refusal(http.StatusTooManyRequests, "limited", "too many requests")
		limited.header["Retry-After"] = "1"
		c.send(limited)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case r.Method != http.MethodPost && !(s.updates && (r.Method == http.MethodPatch || r.Method == http.MethodPut)):
		w.WriteHeader(http.StatusMethodNotAllowed)
	case s.bodyMax > 0 && len(body) > s.bodyMax:
		c.send(c.refusal(http.StatusRequestEntityTooLarge, "large", "the body is too large"))
	default:
		c.send(c.keyed())
	}
}

// overrun counts the requests of the last 100 ms.
func (s *sample) overrun() bool {
	if s.perBurst == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	recent, _ := s.notes["recent"].([]time.Time)
	for len(recent) > 0 && now.Sub(recent[0]) > 100*time.Millisecond {
		recent = recent[1:]
	}
	over := len(recent) >= s.perBurst
	if !over {
		recent = append(recent, now)
	}
	s.notes["recent"] = recent
	return over
}

// keyed is the key layer.
func (c *call) keyed() reply {
	c.key = c.readKey()
	if c.quirk.key != nil {
		c.key = c.quirk.key(c, c.key)
	}
	switch {
	case !c.key.there && c.required:
		return c.refusal(http.StatusBadRequest, "missing", "Idempotency-Key is missing")
	case !c.key.there:
		return c.execute()
	case !c.key.ok:
		return c.refusal(http.StatusBadRequest, "key", "the key is not one")
	}
	id, print := c.names()
	for {
		c.mu.Lock()
		e := c.entries[id]
		if e == nil {
			e = &entry{print: print, over: make(chan struct{}), born: time.Now()}
			c.entries[id] = e
			c.mu.Unlock()
			return c.lead(id, e)
		}
		stored := e.reply
		c.mu.Unlock()
		a, settled := c.standing(e, stored, print)
		if settled {
			return a
		}
		<-e.over
	}
}

func (c *call) names() (id, print string) {
	scope := []string{c.r.Header.Get("Authorization"), c.key.key}
	if c.quirk.scope != nil {
		scope = c.quirk.scope(c, scope)
	}
	covers := []string{c.r.Method, c.r.URL.Path, c.r.URL.RawQuery, string(c.body)}
	if c.quirk.covers != nil {
		covers = c.quirk.covers(c, covers)
	}
	return strings.Join(scope, "\x00"), strings.Join(covers, "\x00")
}

// standing answers a request whose key is known, or says that it has to wait.
func (c *call) standing(e *entry, stored *reply, print string) (reply, bool) {
	hook := func(h func(*call, *entry) (reply, bool)) (reply, bool) {
		if h == nil {
			return reply{}, false
		}
		return h(c, e)
	}
	switch {
	case e.print != print:
		if a, ok := hook(c.quirk.other); ok {
			return a, true
		}
		return c.refusal(or(c.differs, http.StatusUnprocessableEntity), "mismatch", "the key belongs to another request"), true
	case stored == nil:
		if a, ok := hook(c.quirk.pending); ok {
			return a, true
		}
		if c.wait {
			return reply{}, false
		}
		a := c.refusal(or(c.busy, http.StatusConflict), "busy", "the first request is being handled")
		a.header["Retry-After"] = "1"
		return a, true
	}
	if a, ok := hook(c.quirk.repeat); ok {
		return a, true
	}
	if c.wrapped {
		return reply{status: http.StatusOK, header: map[string]string{"Content-Type": "application/json"}, body: `{"replayed":true,"first":` + stored.body + `}`}, true
	}
	return *stored, true
}

// lead executes a request whose key is new, and stores what came of it.
func (c *call) lead(id string, e *entry) (a reply) {
	defer func() {
		crashed := recover()
		if crashed != nil {
			a = c.refusal(http.StatusInternalServerError, "crash", "the handler crashed")
		}
		c.settle(id, e, a)
	}()
	return c.execute()
}

func (c *call) settle(id string, e *entry, a reply) {
	if c.quirk.stuck != nil && c.quirk.stuck(c, a) {
		return
	}
	kept := &a
	if a.status >= 400 && !c.keeps || a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		kept = nil
	}
	if c.quirk.keep != nil {
		kept = c.quirk.keep(c, a)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.reply = kept
	if kept == nil {
		delete(c.entries, id)
	}
	close(e.over)
}

// execute is the service: it is slow, fails and crashes as the query says.
func (c *call) execute() reply {
	if c.quirk.run != nil {
		return c.quirk.run(c)
	}
	return c.serve()
}

func (c *call) serve() reply {
	query := c.r.URL.Query()
	if ms, err := strconv.Atoi(query.Get("sleep")); err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	if query.Get("crash") != "" {
		panic("this crash was asked for")
	}
	if status, err := strconv.Atoi(query.Get("fail")); err == nil {
		return c.refusal(status, "failed", "failure "+strconv.Itoa(c.number()))
	}
	if !json.Valid(c.body) && len(c.body) > 0 {
		return c.refusal(http.StatusBadRequest, "json", "the body is no JSON")
	}
	return c.succeed()
}

func (c *call) succeed() reply {
	id := c.effect()
	a := reply{status: or(c.status, http.StatusCreated), header: map[string]string{"Content-Type": "application/json"}}
	switch {
	case a.status == http.StatusNoContent:
		delete(a.header, "Content-Type")
	case c.nameless:
		a.body = `{"ok":true}`
	default:
		a.body = fmt.Sprintf(`{"id":%q,"reference":%q,"amount":100,"currency":"EUR","status":"accepted"}`, id, c.ref)
	}
	if !c.nameless {
		a.header["Location"] = "/payments/" + id
	}
	return a
}

// effect counts one effect and names it; later, where it follows its answer.
func (c *call) effect() string {
	id := "p" + strconv.Itoa(7000+c.number())
	count := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.effects[c.ref]++
	}
	if c.later > 0 {
		time.AfterFunc(c.later, count)
	} else {
		count()
	}
	return id
}

func (s *sample) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return s.made
}

func (c *call) refusal(status int, code, text string) reply {
	if c.plain {
		return reply{status: status, header: map[string]string{"Content-Type": "text/plain"}, body: text}
	}
	body := fmt.Sprintf(`{"type":"about:blank","status":%d,"code":%q,"detail":%q}`, status, code, text)
	return reply{status: status, header: map[string]string{"Content-Type": "application/problem+json"}, body: body}
}

func (c *call) send(a reply) {
	if a.status == 0 {
		return // a quirk has answered
	}
	for name, value := range a.header {
		c.w.Header().Set(name, value)
	}
	c.w.WriteHeader(a.status)
	_, _ = io.WriteString(c.w, a.body) // nobody may be there
}

// readKey reads the key as the choices say: opaque, strictly quoted, or either.
func (c *call) readKey() labelled {
	lines := c.r.Header.Values("Idempotency-Key")
	if len(lines) == 0 {
		return labelled{}
	}
	text := strings.TrimSpace(lines[0])
	k := labelled{there: true, key: text}
	if strings.HasPrefix(text, `"`) && !c.opaque {
		end := strings.Index(text[1:], `"`)
		if end < 0 || len(text) > end+2 && text[end+2] != ';' || strings.HasSuffix(text, ";=1") {
			return k
		}
		k.key = text[1 : end+1]
	} else if c.quoted {
		return k
	}
	k.ok = len(lines) == 1 && k.key != "" && len(k.key) <= 255 && printable(k.key)
	return k
}

func printable(key string) bool {
	for _, b := range []byte(key) {
		if b <= ' ' || b > '~' || b == ',' {
			return false
		}
	}
	return true
}

func or(value, fallback int) int {
	if value == 0 {
		return fallback
	}
	return value
}
