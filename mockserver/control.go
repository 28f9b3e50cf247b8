package mockserver

import (
	"net"
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// control answers a request to a control path, such as /_ledger, by which a tester asks and steers the mock; false: r is for another path, and
// nothing was written. Such requests do not count as sends, and meet no faults. A restart by POST /_restart spares the connection of the request
// itself.
func (s *Server) control(w http.ResponseWriter, r *http.Request) bool {
	method := http.MethodGet
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
		method = http.MethodPost
		act = func() any { s.Reset(); return map[string]bool{"reset": true} }
	case "/_expire":
		method = http.MethodPost
		act = func() any { s.Expire(); return map[string]bool{"expired": true} }
	case "/_restart":
		method = http.MethodPost
		act = func() any {
			var own net.Conn
			if c, counted := r.Context().Value(connectionKey{}).(*connection); counted {
				own = c.conn
			}
			s.restart(own)
			return map[string]bool{"restarted": true}
		}
	case "/_finish":
		method = http.MethodPost
		act = s.finish
	default:
		return false
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		say(w, http.StatusMethodNotAllowed, "this path takes "+method)
		return true
	}
	reply(w, http.StatusOK, keylayer.JSONType, act())
	return true
}

// finish ends the run of the referee (it judges the client's requests) and returns its verdict, to be written as JSON. Without a referee it returns a
// note that says so.
func (s *Server) finish() any {
	if s.cfg.Referee == nil {
		return map[string]any{"finished": false, "detail": "no referee is at work"}
	}
	return s.cfg.Referee.Finish()
}
