package mockserver

import (
	"net"
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// control answers the paths that are for the person who tests. They are no
// sends, and no fault touches them.
func (s *Server) control(w http.ResponseWriter, r *http.Request) bool {
	want := http.MethodGet
	var act func() any
	switch r.URL.Path {
	case "/_ledger":
		act = func() any { return s.ledger.Snapshot() }
	case "/_effects":
		act = func() any {
			count, total := s.ledger.witness(r.URL.Query().Get("ref"))
			return map[string]int{"count": count, "total": total}
		}
	case "/_reset":
		want = http.MethodPost
		act = func() any { s.Reset(); return map[string]bool{"reset": true} }
	case "/_expire":
		want = http.MethodPost
		act = func() any { s.Expire(); return map[string]bool{"expired": true} }
	case "/_restart":
		want = http.MethodPost
		act = func() any {
			var own net.Conn
			if c, counted := r.Context().Value(connectionKey{}).(*connection); counted {
				own = c.conn
			}
			s.restart(own)
			return map[string]bool{"restarted": true}
		}
	case "/_finish":
		want = http.MethodPost
		act = s.finish
	default:
		return false
	}
	if r.Method != want {
		w.Header().Set("Allow", want)
		say(w, http.StatusMethodNotAllowed, "this path takes "+want)
		return true
	}
	reply(w, http.StatusOK, keylayer.JSONType, act())
	return true
}

// finish ends the referee's run and gives its verdict.
func (s *Server) finish() any {
	if s.cfg.Referee == nil {
		return map[string]any{"finished": false, "detail": "no referee is at work"}
	}
	return s.cfg.Referee.Finish()
}
