package mockserver

import (
	"io"
	"net/http"
	"sync"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// undone is the set of keys whose effects a client has undone (profile.Cancel). It is safe for concurrent use; reset
// makes the map.
type undone struct {
	mu   sync.Mutex
	keys map[string]bool
}

// Undone reports whether a client has undone the effect of the key: the profile has a Cancel, and a request for it
// came when the key's stored answer was a success.
func (s *Server) Undone(key string) bool {
	s.undone.mu.Lock()
	defer s.undone.mu.Unlock()
	return s.undone.keys[key]
}

// reset forgets all keys whose effects a client has undone. New calls it to make the map.
func (u *undone) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = map[string]bool{}
}

// asksToUndo reports whether r asks the server to undo what was done under a key, by the profile's Cancel; false for a profile without one.
func (s *Server) asksToUndo(r *http.Request) bool {
	c := s.cfg.Profile.Cancel
	return c != nil && r.Method == http.MethodPost && r.URL.Path == c.Path
}

// undo answers a request to undo by key; r must be one (asksToUndo). Like Square it answers 200 even for an unknown key, and marks the key only if
// its stored answer is below 300. The request is no send, and meets only the faults of UndoScript: those that drop the answer panic with
// http.ErrAbortHandler. Scope returns the id under which the store has this caller's key; Peek reads the entry and takes nothing.
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
	fault := s.nextUndoFault()
	switch fault.Kind {
	case Answer:
		s.scripted(fault).Write(w)
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
	if entry, known := s.keys.Store.Peek(scope); known && entry.Answer != nil && entry.Answer.Status < 300 {
		s.undone.mu.Lock()
		s.undone.keys[key] = true
		s.undone.mu.Unlock()
	}
	if fault.Kind == DropAfter {
		panic(http.ErrAbortHandler)
	}
	keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, map[string]any{}).Write(w)
}

// nextUndoFault returns the next fault of Config.UndoScript, for a request that cancels an operation; none once the script is used up.
func (s *Server) nextUndoFault() (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.undos < len(s.cfg.UndoScript) {
		f = s.cfg.UndoScript[s.undos]
	}
	s.undos++
	return f
}
