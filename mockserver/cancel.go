package mockserver

import (
	"io"
	"net/http"
	"sync"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// undone counts what was undone by key. It is safe for concurrent use.
type undone struct {
	mu   sync.Mutex
	keys map[string]bool
}

// Undone reports whether what was made under the key was undone: the profile has a Cancel, and a request for it came when
// there was an answer to the key's first request.
func (s *Server) Undone(key string) bool {
	s.undone.mu.Lock()
	defer s.undone.mu.Unlock()
	return s.undone.keys[key]
}

// reset forgets what was undone.
func (u *undone) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = map[string]bool{}
}

// asksToUndo reports whether r asks to undo what was made under a key.
func (s *Server) asksToUndo(r *http.Request) bool {
	c := s.cfg.Profile.Cancel
	return c != nil && r.Method == http.MethodPost && r.URL.Path == c.Path
}

// undo answers such a request: 200 also where nothing is found, as Square does. It is no send, and meets no fault but those
// of UndoScript.
func (s *Server) undo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxRequestBytes))
	if err != nil {
		keylayer.Problem(s.cfg.Profile, http.StatusBadRequest, "the body did not arrive whole", "").Write(w)
		return
	}
	if a := s.unverified(r, body); a != nil {
		a.Write(w)
		return
	}
	f := s.nextUndoFault()
	switch f.Kind {
	case Answer:
		s.scripted(f).Write(w)
		return
	case DropBefore:
		panic(http.ErrAbortHandler)
	}
	key, found := keylayer.LookupText(body, s.cfg.Profile.Cancel.Pointer)
	if !found || key == "" {
		keylayer.Problem(s.cfg.Profile, http.StatusBadRequest, "no key at "+s.cfg.Profile.Cancel.Pointer, "").Write(w)
		return
	}
	scope := s.keys.Scope(&keylayer.Exchange{Request: r, Key: keylayer.Reading{Key: key, Present: true}})
	if e, known := s.keys.Store.Peek(scope); known && e.Answer != nil && e.Answer.Status < 300 {
		s.undone.mu.Lock()
		s.undone.keys[key] = true
		s.undone.mu.Unlock()
	}
	if f.Kind == DropAfter {
		panic(http.ErrAbortHandler)
	}
	keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, map[string]any{}).Write(w)
}

// nextUndoFault is what this request meets.
func (s *Server) nextUndoFault() (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undos < len(s.cfg.UndoScript) {
		f = s.cfg.UndoScript[s.undos]
	}
	s.undos++
	return f
}
