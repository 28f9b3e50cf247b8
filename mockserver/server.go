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
	"sync/atomic"

	"github.com/oncehttp/oncehttp/mockserver/bugs"
	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// Server is the mock. It is an http.Handler, safe for concurrent use. Close
// ends what it has started. New makes one: most methods of a zero one panic.
type Server struct {
	cfg     Config
	keys    *keylayer.Layer
	ledger  *Ledger
	plan    *plan
	rules   *sendRules
	tokens  *tokenDesk // nil where the profile has none
	undone  undone
	events  *events      // nil: none are sent
	own     *service     // nil where Config.Handler supplies the effect
	service http.Handler // what has the effect

	life context.Context // ends with Close
	end  context.CancelFunc

	connections atomic.Uint64 // how many were accepted
	requests    atomic.Uint64 // how many have arrived

	mu      sync.Mutex
	closed  bool
	busy    int                   // requests and connections being handled
	idle    chan struct{}         // closed, and made anew, when busy reaches zero
	conns   map[net.Conn]struct{} // those that http.Server no longer knows
	open    map[net.Conn]struct{} // those that it knows, and those
	process *process
	fronts  []io.Closer
	url     string
	undos   int                    // requests to undo so far
	late    map[string][]*exchange // requests to be handled after the next one with their key
}

// New makes a server. It panics where the configuration is wrong, which is an
// error of the program; ask [Config.Validate] first where it comes from a user.
// Nothing is started: see [Server.Start], [Server.Pipe], or use it as a handler.
func New(cfg Config) *Server {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	s := &Server{cfg: cfg.withDefaults(), ledger: newLedger(), idle: make(chan struct{}), conns: map[net.Conn]struct{}{}, open: map[net.Conn]struct{}{}, late: map[string][]*exchange{}}
	s.plan = newPlan(&s.cfg)
	s.rules = newSendRules(&s.cfg, s.ledger)
	s.tokens = newTokenDesk(&s.cfg)
	s.undone.reset()
	s.events = newEvents(s.cfg.Webhooks)
	s.service = s.cfg.Handler
	if s.service == nil {
		s.own = newService(s.cfg.Profile, func(r *http.Request) keylayer.Digest { return s.keys.Principal(r) })
		s.service = s.own
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.process = newProcess(s.life)
	bug, _ := bugs.Find(cfg.Bug) // Validate has looked for it; "" is the zero bug
	s.keys = keylayer.New(keylayer.Layer{
		Profile: s.cfg.Profile, RequireKey: s.cfg.RequireKey, RetryAfter: s.cfg.RetryAfter, Window: s.cfg.Window, Caller: s.cfg.Caller,
		Store: keylayer.NewStore(s.cfg.Window), Bug: bug.Mutation(), Done: s.life.Done(),
	})
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
func (s *Server) Expire() { s.keys.Store.ExpireAll() }

// Reset forgets keys, resources and counts, and starts the scripts again.
// Requests that are being handled go on, and may still have their effect.
func (s *Server) Reset() {
	s.keys.Store.Reset()
	s.ledger.reset()
	s.plan.reset()
	s.tokens.reset()
	s.undone.reset()
	s.rules.reset()
	s.mu.Lock()
	s.late, s.undos = map[string][]*exchange{}, 0
	s.mu.Unlock()
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
	w, done := s.logged(w, r)
	defer done()
	if s.control(w, r) {
		return
	}
	arrived := r
	r = unmoved(r)
	if s.tokens.asksFor(r) {
		s.handOutToken(w, r)
		return
	}
	if s.asksToUndo(r) {
		s.undo(w, r)
		return
	}
	x := &exchange{w: w, arrived: arrived, Exchange: keylayer.Exchange{Request: r, Number: s.requests.Add(1)}}
	x.Execute = func() *keylayer.Answer { return s.run(x) }
	switch {
	case !mayHaveEffect(r.Method):
		s.safe(x)
	case s.receive(x):
		defer func() { s.rules.finish(x.seen) }()
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

// mayHaveEffect reports whether a request of this method may have an effect: all but the safe methods of RFC 9110
// section 9.2.1.
func mayHaveEffect(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// exchange is one request on its way through the server.
type exchange struct {
	keylayer.Exchange
	w       http.ResponseWriter
	arrived *http.Request // as it was sent, which is what was signed
	fault   Fault
	seen    *observation
	process *process // that handles it
}

// receive reads the whole request and writes it into the ledger. A request
// whose body does not arrive whole is no send: it claims no key.
func (s *Server) receive(x *exchange) bool {
	body, err := io.ReadAll(http.MaxBytesReader(x.plainWriter(), x.Request.Body, s.cfg.MaxRequestBytes))
	if err != nil {
		if broken := s.keys.Bug.Broken; broken != nil {
			broken(s.keys, &x.Exchange)
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			keylayer.Problem(s.cfg.Profile, http.StatusRequestEntityTooLarge, "the body is too large", "").Write(x.w)
			return false
		}
		keylayer.Problem(s.cfg.Profile, http.StatusBadRequest, "the body did not arrive whole", "").Write(x.w)
		return false
	}
	x.Body = body
	x.Key = keylayer.ReadKey(s.cfg.Profile, x.Request, body)
	x.seen = s.rules.begin(x.Request, x.Key, body)
	x.fault = s.plan.next(x.seen.Key, x.seen.Operation)
	x.noteSend()
	if read := s.keys.Bug.Read; read != nil {
		x.Key = read(s.keys, &x.Exchange)
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
		s.keys.Store.Expire(s.keys.Scope(&x.Exchange))
	}
	if late := s.keys.Bug.Late; late != nil {
		defer func() {
			x.Delivered = x.seen.Whole
			late(s.keys, &x.Exchange)
		}()
	}
	a, said := s.handle(x)
	s.arriveLate(x.seen.Key)
	if x.fault.Kind == Duplicate {
		s.duplicate(x)
	}
	if shape := s.keys.Bug.Shape; shape != nil {
		a = a.Clone()
		shape(s.keys, &x.Exchange, said, a)
	}
	s.deliver(x, a)
}

// run has the effect. It goes on when the client leaves, as a server's work
// does; a panic is a 500, except http.ErrAbortHandler, which aborts.
func (s *Server) run(x *exchange) (a *keylayer.Answer) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.Request.Context()))
	defer cancel()
	defer context.AfterFunc(x.process, cancel)()
	request := x.Request.Clone(ctx)
	request.Body = io.NopCloser(bytes.NewReader(x.Body))
	recorder := keylayer.NewRecorder()
	defer func() {
		crash := recover()
		x.Crashed, x.Killed = crash != nil, crash != nil && x.process.Err() != nil
		switch crash {
		case nil:
		case http.ErrAbortHandler:
			panic(crash)
		default:
			a = keylayer.Problem(s.cfg.Profile, http.StatusInternalServerError, "the handler failed", "")
		}
	}()
	if x.fault.holds() && !keylayer.Pause(x.fault.Delay, x.process.Done(), nil) {
		panic(http.ErrAbortHandler)
	}
	s.service.ServeHTTP(recorder, request)
	a = recorder.Answer()
	if s.own != nil {
		a = keylayer.Proving(s.cfg.Profile, a, profile.ProvesSucceeded)
	}
	if a.Status < 400 && !keylayer.RefusedInBody(s.cfg.Profile, a) {
		s.ledger.effect(x.seen.Key, s.reference(x))
		s.tokens.use(x.seen.Key)
		s.tell(x)
	}
	if x.fault.Kind == AnswerAfter && keylayer.Keeps(s.cfg.Profile, s.scripted(x.fault)) && x.fault.status() >= 500 {
		a = s.scripted(x.fault) // an API that stores its 500 has stored this one
	}
	return a
}

// safe serves a request that asks for no effect; keys mean nothing here.
func (s *Server) safe(x *exchange) {
	if a := s.unverifiedSafe(x); a != nil {
		a.Write(x.w)
		return
	}
	if safe := s.keys.Bug.Safe; safe != nil {
		if a := safe(s.keys, &x.Exchange); a != nil {
			a.Write(x.w)
			return
		}
	}
	recorder := keylayer.NewRecorder()
	s.service.ServeHTTP(recorder, x.Request)
	recorder.Answer().Write(x.w)
}

// reference is what the witness counts by.
func (s *Server) reference(x *exchange) string {
	pointer := s.cfg.OperationPointer
	if pointer == "" {
		pointer = "/reference"
	}
	text, _ := keylayer.LookupText(keylayer.AsJSON(x.Request, x.Body), pointer)
	return text
}
