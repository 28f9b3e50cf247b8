package mockserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
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
	x := &exchange{w: w, r: r}
	switch {
	case !changes(r.Method):
		s.safe(x)
	case s.receive(x):
		defer s.watch.finish(x)
		s.play(x)
	}
}

// changes reports whether a method asks for an effect.
func changes(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// exchange is one request on its way through the server.
type exchange struct {
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	key   reading
	fault Fault
	seen  *sight
}

// receive reads the whole request and writes it into the ledger. A request
// whose body does not arrive whole is no send: it claims no key.
func (s *Server) receive(x *exchange) bool {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, s.cfg.MaxRequestBytes))
	if err != nil {
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
	x.seen = s.watch.begin(x.r, x.key, s.fingerprint(x.r, body), body)
	x.fault = s.plan.next(x.seen.key, x.seen.operation)
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
	s.deliver(x, s.handle(x))
}

// handle is the server without its faults: what a request is answered.
func (s *Server) handle(x *exchange) *answer {
	p := s.cfg.Profile
	honoured := slices.Contains(p.Methods, x.r.Method)
	switch {
	case honoured && x.key.err != nil:
		return problem(p, http.StatusBadRequest, "Idempotency-Key is invalid", x.key.err.Error())
	case honoured && !x.key.present && s.cfg.RequireKey:
		return problem(p, http.StatusBadRequest, titleMissing, "")
	case !honoured || !x.key.present:
		return s.run(x)
	}
	e, said := s.store.begin(s.scope(x), s.fingerprint(x.r, x.body), time.Now())
	switch said {
	case mismatch:
		return s.mismatchAnswer(e)
	case running:
		return s.inProgressAnswer()
	case replayed:
		return s.replayAnswer(e.answer)
	default:
		return s.first(x, e)
	}
}

// first executes a request that holds its key. Whatever the handler does, the
// key is finished or released afterwards.
func (s *Server) first(x *exchange, e *entry) *answer {
	kept := false
	defer func() {
		if !kept {
			s.store.release(e)
		}
	}()
	a := s.run(x)
	if kept = keeps(s.cfg.Profile, a); kept {
		s.store.finish(e, a)
	}
	return a
}

// scope is the key together with whose it is.
func (s *Server) scope(x *exchange) digest {
	return digestOf(append(principal(s.cfg.Profile, x.r.Header), x.key.key)...)
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
		switch crash := recover(); crash {
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
