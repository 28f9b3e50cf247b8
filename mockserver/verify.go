package mockserver

import (
	"bytes"
	"io"
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// unverified returns the answer 401 to a request with a signature that Config.Verify refuses; nil if it accepts it, or is not
// set. arrived is the request as it came, before its path was shortened, since that form was signed.
func (s *Server) unverified(arrived *http.Request, body []byte) *keylayer.Answer {
	if s.cfg.Verify == nil {
		return nil
	}
	err := s.cfg.Verify(arrived, body)
	if err == nil {
		return nil
	}
	a := keylayer.Problem(s.cfg.Profile, http.StatusUnauthorized, "the signature is refused", err.Error())
	a.Header.Set("WWW-Authenticate", "Signature") // a 401 needs one: RFC 9110 section 11.6.1
	return a
}

// unverifiedSafe checks the signature of a request of a safe method by Config.Verify. It returns the refusal, a 400 if the body does not arrive, or
// nil. It reads the body and puts it back for the service.
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
