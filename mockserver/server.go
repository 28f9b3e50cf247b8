package mockserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is the mock. It is an http.Handler, safe for concurrent use. Close
// ends what it has started.
type Server struct {
	cfg     Config
	bug     mutation
	store   *store
	ledger  *Ledger
	plan    *plan
	watch   *watch
	own     *service     // nil where Config.Handler supplies the effect
	service http.Handler // what has the effect

	life context.Context // ends with Close
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
	busy   int           // requests and connections being handled
	idle   chan struct{} // closed, and made anew, when busy reaches zero
	conns  map[net.Conn]struct{}
	fronts []io.Closer
	url    string
}

// New makes a server. It panics where the configuration is wrong, which is an
// error of the program; ask [Config.Validate] first where it comes from a user.
// Nothing is started: see [Server.Start], [Server.Pipe], or use it as a handler.
func New(cfg Config) *Server {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	s := &Server{cfg: cfg.withDefaults(), ledger: newLedger(), idle: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	s.bug, _ = findBug(cfg.Bug)
	s.store = newStore(s.cfg.Window)
	s.plan = newPlan(&s.cfg)
	s.watch = newWatch(&s.cfg, s.ledger)
	s.service = s.cfg.Handler
	if s.service == nil {
		s.own = newService()
		s.service = s.own
	}
	s.life, s.end = context.WithCancel(context.Background())
	if s.bug.setup != nil {
		s.bug.setup(s)
	}
	return s
}

// Ledger is the count of sends and effects. It stays the same object for the
// life of the server; Reset empties it.
func (s *Server) Ledger() *Ledger { return s.ledger }

// Err joins the violations of the clients, each a [Violation]; nil: none seen.
func (s *Server) Err() error { return s.ledger.err() }

// Inject appends faults to the global script: the next sends meet them.
func (s *Server) Inject(faults ...Fault) {
	for _, fault := range faults {
		if err := fault.Validate(); err != nil {
			panic(err.Error())
		}
	}
	s.plan.inject(faults)
}

// Expire forgets every key that is not being handled, as if all windows had
// passed. The resources and the ledger stay.
func (s *Server) Expire() { s.store.expireAll() }

// Reset forgets keys, resources and counts, and starts the scripts again.
// Requests that are being handled go on, and may still have their effect.
func (s *Server) Reset() {
	s.store.reset()
	s.ledger.reset()
	s.plan.reset()
	s.watch.reset()
	if s.own != nil {
		s.own.reset()
	}
}

// ServeHTTP handles one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.leave()
	if s.control(w, r) {
		return
	}
	r = unmoved(r)
	x := &exchange{w: w, r: r, carrier: s.cfg.Profile.Carrier.Name}
	switch {
	case !changes(r.Method):
		s.safe(x)
	case s.receive(x):
		defer func() { s.watch.finish(x.seen) }()
		s.play(x)
	}
}

// movedPrefix is where Redirect sends a client by default.
const movedPrefix = "/moved"

// unmoved makes of a request to /moved/x one to /x: it is the same place.
func unmoved(r *http.Request) *http.Request {
	path, moved := strings.CutPrefix(r.URL.Path, movedPrefix+"/")
	if !moved {
		return r
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/"+path, strings.TrimPrefix(r.URL.RawPath, movedPrefix)
	return r
}

// changes reports whether a method asks for an effect.
func changes(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// exchange is one request on its way through the server.
type exchange struct {
	w       http.ResponseWriter
	r       *http.Request
	carrier string
	body    []byte
	key     reading
	fault   Fault
	seen    *sight
	entry   *entry // as the store gave it
	crashed bool   // the handler panicked

	// What a bug holds back until the answer has been handed out.
	held   *entry
	answer *answer
}

// receive reads the whole request and writes it into the ledger. A request
// whose body does not arrive whole is no send: it claims no key.
func (s *Server) receive(x *exchange) bool {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, s.cfg.MaxRequestBytes))
	if err != nil {
		if s.bug.broken != nil {
			s.bug.broken(s, x)
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			problem(s.cfg.Profile, http.StatusRequestEntityTooLarge, "the body is too large", "").write(x.w)
			return false
		}
		problem(s.cfg.Profile, http.StatusBadRequest, "the body did not arrive whole", "").write(x.w)
		return false
	}
	x.body = body
	x.key = readKey(s.cfg.Profile, x.r, body)
	x.seen = s.watch.begin(x.r, x.key, body)
	x.fault = s.plan.next(x.seen.key, x.seen.operation)
	if s.bug.read != nil {
		x.key = s.bug.read(s, x)
	}
	return true
}

// play lets the request meet its fault.
func (s *Server) play(x *exchange) {
	if x.fault.before() {
		s.refuse(x)
		return
	}
	if x.fault.Kind == Expire {
		s.store.expire(s.scope(x))
	}
	if s.bug.late != nil {
		defer s.bug.late(s, x)
	}
	a, said := s.handle(x)
	if s.bug.shape != nil {
		a = a.clone()
		s.bug.shape(s, x, said, a)
	}
	s.deliver(x, a)
}

// handle is the server without its faults: what a request is answered, and
// what the store said of it.
func (s *Server) handle(x *exchange) (*answer, claim) {
	p := s.cfg.Profile
	honoured := slices.Contains(p.Methods, x.r.Method)
	if s.bug.intercept != nil && honoured {
		if a := s.bug.intercept(s, x); a != nil {
			return a, unkeyed
		}
	}
	switch {
	case honoured && x.key.err != nil:
		return problem(p, http.StatusBadRequest, "Idempotency-Key is invalid", x.key.err.Error()), unkeyed
	case honoured && !x.key.present && s.cfg.RequireKey:
		return problem(p, http.StatusBadRequest, titleMissing, ""), unkeyed
	case !honoured || !x.key.present:
		return s.run(x), unkeyed
	}
	e, said := s.begin(x)
	x.entry = e
	if s.bug.claimed != nil {
		if a := s.bug.claimed(s, x, e, said); a != nil {
			return a, said
		}
	}
	switch said {
	case mismatch:
		return s.mismatchAnswer(e), said
	case running:
		return s.inProgressAnswer(), said
	case replayed:
		return s.replayAnswer(e.answer), said
	default:
		return s.first(x, e), said
	}
}

// begin claims the key.
func (s *Server) begin(x *exchange) (*entry, claim) {
	id, print := s.scope(x), s.fingerprint(x.r, x.body)
	if s.bug.begin != nil {
		return s.bug.begin(s, id, print)
	}
	return s.store.begin(id, print, time.Now())
}

// first executes a request that holds its key. Whatever the handler does, the
// key is finished or released afterwards.
func (s *Server) first(x *exchange, e *entry) *answer {
	settled := false
	defer func() {
		if !settled && !(x.crashed && s.bug.abortLeaks) {
			s.store.release(e)
		}
	}()
	a := s.run(x)
	if s.bug.settle != nil {
		if settled = s.bug.settle(s, x, e, a); settled {
			return a
		}
	}
	if settled = keeps(s.cfg.Profile, a); settled {
		s.store.finish(e, a)
	}
	return a
}

// run has the effect. It goes on when the client leaves, as a server's work
// does; a panic is a 500, except http.ErrAbortHandler, which aborts.
func (s *Server) run(x *exchange) (a *answer) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if x.fault.Kind != SlowBody && x.fault.Kind != HangAfter {
		pause(x.fault.Delay, s.life.Done(), nil)
	}
	request := x.r.Clone(ctx)
	request.Body = io.NopCloser(bytes.NewReader(x.body))
	recorder := newRecorder()
	defer func() {
		crash := recover()
		x.crashed = crash != nil
		switch crash {
		case nil:
		case http.ErrAbortHandler:
			panic(crash)
		default:
			a = problem(s.cfg.Profile, http.StatusInternalServerError, "the handler failed", "")
		}
	}()
	s.service.ServeHTTP(recorder, request)
	a = recorder.answer()
	if a.status < 400 {
		s.ledger.effect(x.seen.key, s.reference(x.body))
	}
	if x.fault.Kind == AnswerAfter && keeps(s.cfg.Profile, s.scripted(x.fault)) && x.fault.status() >= 500 {
		a = s.scripted(x.fault) // an API that stores its 500 has stored this one
	}
	return a
}

// safe serves a request that asks for no effect; keys mean nothing here.
func (s *Server) safe(x *exchange) {
	if s.bug.safe != nil {
		if a := s.bug.safe(s, x); a != nil {
			a.write(x.w)
			return
		}
	}
	recorder := newRecorder()
	s.service.ServeHTTP(recorder, x.r)
	recorder.answer().write(x.w)
}

// reference is what the witness counts by.
func (s *Server) reference(body []byte) string {
	pointer := s.cfg.OperationPointer
	if pointer == "" {
		pointer = "/reference"
	}
	text, _ := lookupText(body, pointer)
	return text
}
