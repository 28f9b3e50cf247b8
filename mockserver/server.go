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

// Server is the mock. It is an http.Handler, safe for concurrent use. Its owner
// must call Close. New makes one; most methods of a zero Server panic.
type Server struct {
	cfg     Config // with the defaults filled in; not changed
	keys    *keylayer.Layer
	ledger  *Ledger
	plan    *plan
	rules   *sendRules
	tokens  *tokenDesk // nil: the profile has none
	undone  undone
	events  *events      // nil: none are sent
	own     *service     // nil: Config.Handler executes requests
	service http.Handler // executes requests: own, or Config.Handler

	life context.Context // ends with Close
	end  context.CancelFunc

	connections atomic.Uint64 // how many were accepted
	requests    atomic.Uint64 // handled requests, redeliveries included

	mu      sync.Mutex // guards the fields below
	closed  bool
	busy    int                    // requests and connections being handled
	idle    chan struct{}          // closed, and made anew, when busy reaches zero
	conns   map[net.Conn]struct{}  // hijacked connections; see track
	open    map[net.Conn]struct{}  // all connections
	process *process               // set by handle: a restart ends it
	fronts  []io.Closer            // the http.Servers of Listen and Pipe
	url     string                 // of Listen; empty before
	undos   int                    // requests to undo so far
	late    map[string][]*exchange // requests kept by delay, by key
}

// New makes a server. It panics on a wrong configuration, which is an error of the program; ask [Config.Validate]
// first if the configuration comes from a user. Nothing is started: see [Server.Start] and [Server.Pipe], or use the
// server as a handler.
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

// Ledger returns the count of sends and effects: the same object for the life of the server. Reset empties it.
func (s *Server) Ledger() *Ledger { return s.ledger }

// Err joins the clients' violations, each a [Violation]; nil: none so far.
func (s *Server) Err() error { return s.ledger.err() }

// Inject appends faults to the global script: the next sends meet them. It panics on an invalid fault, before any is
// appended.
func (s *Server) Inject(faults ...Fault) {
	for _, fault := range faults {
		if err := fault.Validate(); err != nil {
			panic(err.Error())
		}
	}
	s.plan.inject(faults)
}

// Expire forgets every key with an answer, as if the time for which the server knows it had passed. Keys of requests in a handler, resources and the
// ledger stay.
func (s *Server) Expire() { s.keys.Store.ExpireAll() }

// Reset forgets keys, tokens, resources and counts, and starts the scripts again. Requests in a handler go on, and
// may still have their effect. The counts of EventAnswers stay.
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

// ServeHTTP handles one request: one to a control path, for a token, to undo, of a method without effects, or a send, in this order. It panics with
// http.ErrAbortHandler to cut the connection: by a fault, or after Close. arrived is the request as it came, before the prefix of a redirect was
// taken off its path.
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

// movedPrefix begins the path of the default Location of Redirect.
const movedPrefix = "/moved"

// unmoved returns the request with its path without movedPrefix, in a clone: both paths name the same resource. Any
// other request is returned as it is.
func unmoved(r *http.Request) *http.Request {
	path, moved := strings.CutPrefix(r.URL.Path, movedPrefix+"/")
	if !moved {
		return r
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/"+path, strings.TrimPrefix(r.URL.RawPath, movedPrefix)
	return r
}

// mayHaveEffect reports whether requests of this method may have an effect: all but the safe methods of RFC 9110,
// section 9.2.1.
func mayHaveEffect(method string) bool {
	return !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// exchange is one delivery of a request on its way through the server. One goroutine at a time uses it.
type exchange struct {
	keylayer.Exchange
	w       http.ResponseWriter // nil for a redelivery
	arrived *http.Request       // before unmoved: the form that was signed
	fault   Fault               // of the send; zero for a redelivery
	seen    *observation        // of the send; nil: the request is none (safe methods)
	process *process            // that handles it
}

// receive reads the whole body, counts the send, and sets x.Body, x.Key, x.seen (the record of this send) and x.fault. The caller must then call
// rules.finish(x.seen). False: the body was too large or did not arrive whole, the error is answered, and nothing was counted. The functions of Bug
// are those of a deliberate bug; they are nil in a correct server.
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
	x.seen = s.rules.begin(x.Request, x.Key, body) // before Bug.Read: clients are judged by the key that they sent
	x.fault = s.plan.next(x.seen.Key, x.seen.Operation)
	x.noteSend()
	if read := s.keys.Bug.Read; read != nil {
		x.Key = read(s.keys, &x.Exchange)
	}
	return true
}

// play lets a received request meet its fault, such as a lost answer, before or after it is handled, and answers it or cuts the connection. The
// functions of Bug are those of a deliberate bug; they are nil in a correct server: Late acts after the answer, and Shape changes it.
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
	a, claim := s.handle(x)
	s.arriveLate(x.seen.Key) // requests with this key that the fault Late has kept back
	if x.fault.Kind == Duplicate {
		s.duplicate(x)
	}
	if shape := s.keys.Bug.Shape; shape != nil {
		a = a.Clone()
		shape(s.keys, &x.Exchange, claim, a)
	}
	s.deliver(x, a)
}

// run executes the request in the service and counts its effect, unless the answer is a refusal; it returns the answer. It goes on when the client
// leaves, and ends when the server restarts or closes (x.process). A panic of the handler becomes a 500; http.ErrAbortHandler is passed on. The key
// layer calls it with the key claimed. s.own is the mock's own service; nil if Config.Handler is set. Proving adds the members by which answers of
// the API prove success. tell sends the webhook about the effect.
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
		a = keylayer.Proving(keylayer.VerdictsFor(s.cfg.Profile, request), a, profile.ProvesSucceeded)
	}
	if a.Status < 400 && !keylayer.RefusedInBody(keylayer.VerdictsFor(s.cfg.Profile, request), a) {
		s.ledger.effect(x.seen.Key, s.reference(x))
		s.tokens.use(x.seen.Key)
		s.tell(x)
	}
	if x.fault.Kind == AnswerAfter && keylayer.Keeps(s.cfg.Profile, s.scripted(x.fault)) && x.fault.status() >= 500 {
		a = s.scripted(x.fault) // an API that stores its 500s stores this one, too
	}
	return a
}

// safe answers a request of a method without effects, such as GET: no key is looked at, no fault is met, and nothing is counted. Bug.Safe is the
// function of a deliberate bug, by which the server answers from its store of keys; nil in a correct server.
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

// reference returns the identifier by which the ledger counts effects: the value at OperationPointer (empty:
// /reference); empty if the body has none.
func (s *Server) reference(x *exchange) string {
	pointer := s.cfg.OperationPointer
	if pointer == "" {
		pointer = "/reference"
	}
	text, _ := keylayer.LookupText(keylayer.AsJSON(x.Request, x.Body), pointer)
	return text
}
