package mockserver

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// tokenDesk hands out the tokens of a profile (profile.Token), and checks their use. It is safe for concurrent use. A
// nil one has no tokens: reset, asksFor and use accept it.
type tokenDesk struct {
	cfg  *Config
	path *regexp.Regexp // of requests for tokens

	mu      sync.Mutex
	asked   int                // requests for tokens so far: the next entry of TokenScript
	tickets map[string]*ticket // by token // by token
}

// ticket is the record of one token.
type ticket struct {
	caller  keylayer.Digest // the only caller that may use it
	purpose string          // the only path of its use; empty: any
	until   time.Time       // the end of TokenLife, exclusive
	used    bool            // a request with it had an effect
}

// newTokenDesk returns the desk that hands out tokens: keys made by the server. It is nil if the profile has no requests for tokens. In the profile's
// path, {path} matches any text and any other {name} one segment.
func newTokenDesk(cfg *Config) *tokenDesk {
	t := cfg.Profile.Token
	if t == nil || t.Path == "" {
		return nil
	}
	path, _, _ := strings.Cut(t.Path, "?")
	pattern := "^"
	for i, part := range strings.Split(path, "{") {
		if inBraces, rest, found := strings.Cut(part, "}"); i > 0 && found {
			pattern += map[bool]string{true: ".*", false: "[^/]*"}[inBraces == "path"] + regexp.QuoteMeta(rest)
			continue
		}
		pattern += regexp.QuoteMeta(part)
	}
	return &tokenDesk{cfg: cfg, path: regexp.MustCompile(pattern + "$"), tickets: map[string]*ticket{}}
}

// reset forgets all tokens and starts TokenScript again. A nil desk, which gives no tokens, stays as it is.
func (d *tokenDesk) reset() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked, d.tickets = 0, map[string]*ticket{}
}

// asksFor reports whether r asks for a token, a key made by the server, by the profile's method and path; false for a nil desk.
func (d *tokenDesk) asksFor(r *http.Request) bool {
	if d == nil {
		return false
	}
	method := d.cfg.Profile.Token.Method
	return (r.Method == method || method == "" && r.Method == http.MethodPost) && d.path.MatchString(r.URL.Path)
}

// handOut returns a new token in the form of a UUID for the caller, usable at the path purpose (empty: any). Tokens depend only on the seed and their
// number, so that the same run has the same ones. The 4 and the a are a UUID's version and variant.
func (d *tokenDesk) handOut(caller keylayer.Digest, purpose string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := fmt.Sprintf("%x", keylayer.DigestOf("token", fmt.Sprint(d.cfg.Seed), fmt.Sprint(len(d.tickets))))
	token := h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
	d.tickets[token] = &ticket{caller: caller, purpose: purpose, until: time.Now().Add(d.cfg.TokenLife)}
	return token
}

// nextFault takes the next fault of TokenScript, the faults for requests for a token; the zero Fault, none, once the script is used up.
func (d *tokenDesk) nextFault() (f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked < len(d.cfg.TokenScript) {
		f = d.cfg.TokenScript[d.asked]
	}
	d.asked++
	return f
}

// use marks a token as used: the server made an effect for it, and the token allows no other one. Any other text is ignored.
func (d *tokenDesk) use(token string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tickets[token]; t != nil {
		t.used = true
	}
}

// wrong returns the reason against handling a request of the caller to path under the token; "" if there is none.
// known: the store knows the token as a key, so that the key layer answers a repeat.
func (d *tokenDesk) wrong(token, path string, caller keylayer.Digest, known bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tickets[token]
	switch {
	case t == nil || t.caller != caller: // to another caller it is as if there were none
		return "the token was not handed out"
	case t.purpose != "" && t.purpose != path:
		return "the token is for another purpose"
	case known:
		return ""
	case t.used:
		return "the token was used"
	case !time.Now().Before(t.until):
		return "the token has expired"
	}
	return ""
}

// Tokens returns the number of tokens handed out since the start or Reset, those with a lost answer included.
func (s *Server) Tokens() int {
	if s.tokens == nil {
		return 0
	}
	s.tokens.mu.Lock()
	defer s.tokens.mu.Unlock()
	return len(s.tokens.tickets)
}

// handOutToken answers a request for a token (asksFor). It is no send, and meets only the faults of TokenScript: those that drop the answer panic
// with http.ErrAbortHandler. Planted makes an answer with the token at the profile's pointer.
func (s *Server) handOutToken(w http.ResponseWriter, r *http.Request) {
	if a := s.unverified(r, nil); a != nil {
		a.Write(w)
		return
	}
	fault := s.tokens.nextFault()
	if fault.Kind == Answer {
		s.scripted(fault).Write(w)
		return
	}
	if fault.Kind == DropBefore {
		panic(http.ErrAbortHandler)
	}
	token := s.tokens.handOut(s.keys.Principal(r), r.URL.Query().Get("purpose"))
	if fault.Kind == DropAfter {
		panic(http.ErrAbortHandler)
	}
	keylayer.Planted(http.StatusCreated, s.cfg.Profile.Token.Pointer, token).Write(w)
}

// refuseToken returns the refusal of a request with a bad token: unknown to its caller, for another path, expired or used. nil: the token is good,
// the profile has no tokens, or the request has no valid key. For a token that the store knows as a key the key layer answers, also after its use.
func (s *Server) refuseToken(x *exchange) *keylayer.Answer {
	if s.tokens == nil || !x.Key.Present || x.Key.Err != nil {
		return nil
	}
	known := s.keys.Store.Known(s.keys.Scope(&x.Exchange), time.Now())
	why := s.tokens.wrong(x.Key.Key, x.Request.URL.Path, s.keys.Principal(x.Request), known)
	if why == "" {
		return nil
	}
	return keylayer.Problem(s.cfg.Profile, http.StatusForbidden, why, "")
}

// validateTokens returns the first mistake in TokenLife, TokenScript and UndoScript, or nil.
func (c *Config) validateTokens() error {
	if c.TokenLife < 0 {
		return fmt.Errorf("mockserver: negative TokenLife %v", c.TokenLife)
	}
	for name, script := range map[string][]Fault{"TokenScript": c.TokenScript, "UndoScript": c.UndoScript} {
		for i, f := range script {
			if f.Kind != None && f.Kind != DropBefore && f.Kind != DropAfter && f.Kind != Answer {
				return fmt.Errorf("mockserver: entry %d of %s: %v; want none, drop-before, drop-after or answer", i+1, name, f.Kind)
			}
		}
	}
	if len(c.TokenScript) > 0 && !handsOut(c.Profile) {
		return fmt.Errorf("mockserver: TokenScript, and a profile that says nothing of tokens")
	}
	return validateScripts([][]Fault{c.TokenScript, c.UndoScript})
}

// handsOut reports whether the API of the profile hands out keys (tokens) on request; a nil profile has no such requests.
func handsOut(p *profile.Profile) bool { return p != nil && p.Token != nil && p.Token.Path != "" }
