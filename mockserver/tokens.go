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

// tokenDesk hands out the tokens of a profile that has them, and knows which it has handed out. It is safe for concurrent
// use.
type tokenDesk struct {
	cfg  *Config
	path *regexp.Regexp

	mu      sync.Mutex
	asked   int // requests for tokens
	tickets map[string]*ticket
}

// ticket is a token that was handed out.
type ticket struct {
	caller  keylayer.Digest
	purpose string // the path that it is good for; empty: any
	until   time.Time
	used    bool // an effect came of it
}

// newTokenDesk is the desk of a server; nil where the profile says nothing of tokens.
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

// reset forgets all tokens.
func (d *tokenDesk) reset() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked, d.tickets = 0, map[string]*ticket{}
}

// asksFor reports whether r asks for a token.
func (d *tokenDesk) asksFor(r *http.Request) bool {
	if d == nil {
		return false
	}
	method := d.cfg.Profile.Token.Method
	return (r.Method == method || method == "" && r.Method == http.MethodPost) && d.path.MatchString(r.URL.Path)
}

// handOut makes a new token for the caller, for the path that the query parameter purpose names, or for any.
func (d *tokenDesk) handOut(caller keylayer.Digest, purpose string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := fmt.Sprintf("%x", keylayer.DigestOf("token", fmt.Sprint(d.cfg.Seed), fmt.Sprint(len(d.tickets))))
	token := h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
	d.tickets[token] = &ticket{caller: caller, purpose: purpose, until: time.Now().Add(d.cfg.TokenLife)}
	return token
}

// nextFault is what this request for a token meets.
func (d *tokenDesk) nextFault() (f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked < len(d.cfg.TokenScript) {
		f = d.cfg.TokenScript[d.asked]
	}
	d.asked++
	return f
}

// use notes that an effect came of the token.
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

// wrong says why a request to path must not be handled under the token; "" if it may be. known says that its key is
// remembered, so that what it is answered is the key layer's to say.
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

// Tokens is how many tokens the server has handed out; those whose answer was lost count.
func (s *Server) Tokens() int {
	if s.tokens == nil {
		return 0
	}
	s.tokens.mu.Lock()
	defer s.tokens.mu.Unlock()
	return len(s.tokens.tickets)
}

// handOutToken answers a request for a token.
func (s *Server) handOutToken(w http.ResponseWriter, r *http.Request) {
	if a := s.unverified(r, nil); a != nil {
		a.Write(w)
		return
	}
	f := s.tokens.nextFault()
	if f.Kind == Answer {
		s.scripted(f).Write(w)
		return
	}
	if f.Kind == DropBefore {
		panic(http.ErrAbortHandler)
	}
	token := s.tokens.handOut(s.keys.Principal(r), r.URL.Query().Get("purpose"))
	if f.Kind == DropAfter {
		panic(http.ErrAbortHandler)
	}
	keylayer.Planted(http.StatusCreated, s.cfg.Profile.Token.Pointer, token).Write(w)
}

// refuseToken is the answer to a request whose token was not handed out to its caller for this, has expired or was used;
// nil if it is good, or no token.
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

// validateTokens says what is wrong with the configuration of tokens and of undoing.
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

func handsOut(p *profile.Profile) bool { return p != nil && p.Token != nil && p.Token.Path != "" }
