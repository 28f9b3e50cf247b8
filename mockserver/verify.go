package mockserver

import (
	"bytes"
	"io"
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// unverified is the answer to a request whose signature Config.Verify refuses; nil if it does not.
func (s *Server) unverified(arrived *http.Request, body []byte) *keylayer.Answer {
	if s.cfg.Verify == nil {
		return nil
	}
	err := s.cfg.Verify(arrived, body)
	if err == nil {
		return nil
	}
	a := keylayer.Problem(s.cfg.Profile, http.StatusUnauthorized, "the signature is refused", err.Error())
	a.Header.Set("WWW-Authenticate", "Signature") // which RFC 9110 section 11.6.1 wants beside a 401
	return a
}

// unverifiedSafe is unverified for a request that asks for no effect. It reads the body, and puts it back for the
// service.
func (s *Server) unverifiedSafe(x *exchange) *keylayer.Answer {
	if s.cfg.Verify == nil {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.Request.Body, s.cfg.MaxRequestBytes))
	if err != nil {
		return keylayer.Problem(s.cfg.Profile, http.StatusBadRequest, "the body did not arrive whole", "")
	}
	x.Request.Body = io.NopCloser(bytes.NewReader(body))
	return s.unverified(x.arrived, body)
}
