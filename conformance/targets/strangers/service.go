package strangers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Service is the service without keys: it executes each request that arrives. It is safe for
// concurrent use; make it with NewService, and set the fields before the first request.
type Service struct {
	// Before is called just before each effect. Nil: no call.
	Before func(r *http.Request)
	// Late is the delay of an effect after its answer. Zero: none.
	Late time.Duration

	mu      sync.Mutex     // guards the fields below
	made    int            // operations so far
	effects map[string]int // by reference
}

// NewService returns the business behind the servers under test. It counts its effects, and has had none yet.
func NewService() *Service { return &Service{effects: map[string]int{}} }

// ServeHTTP executes a request. Each one has an effect, also a repeat: to prevent that is the task of the layer before it. GET /_effects?ref=REF is
// answered with the number of effects of a reference.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_effects" {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, http.StatusOK, fmt.Sprintf(`{"count":%d}`, s.effects[r.URL.Query().Get("ref")]))
		return
	}
	if r.URL.Path != "/payments" && r.URL.Path != "/refunds" {
		answer(w, http.StatusNotFound, `{"error":"no such path"}`)
		return
	}
	switch r.Method {
	case http.MethodPost, http.MethodPatch, http.MethodPut:
		s.work(w, r)
	default:
		answer(w, http.StatusMethodNotAllowed, `{"error":"no such method"}`)
	}
}

// work executes one operation: one effect, unless the query asks for a crash or a failure.
// sleep, in milliseconds, makes it slow.
func (s *Service) work(w http.ResponseWriter, r *http.Request) {
	var body struct{ Reference string }
	data, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(data, &body) != nil {
		answer(w, http.StatusBadRequest, `{"error":"the body is no JSON object, or was cut off"}`)
		return
	}
	query := r.URL.Query()
	if ms, err := strconv.Atoi(query.Get("sleep")); err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	if query.Get("crash") != "" {
		panic("this crash was asked for")
	}
	if status, err := strconv.Atoi(query.Get("fail")); err == nil {
		answer(w, status, `{"error":"this failure was asked for"}`)
		return
	}
	if s.Before != nil {
		s.Before(r)
	}
	id := s.effect(body.Reference)
	w.Header().Set("Location", r.URL.Path+"/"+id)
	answer(w, http.StatusCreated, fmt.Sprintf(`{"id":%q,"reference":%q,"status":"accepted"}`, id, body.Reference))
}

// effect counts one effect of a reference, and returns its id at once. With s.Late the effect is counted only after that time, as by servers that
// answer first and work later.
func (s *Service) effect(reference string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	count := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.effects[reference]++
	}
	if s.Late > 0 {
		time.AfterFunc(s.Late, count)
	} else {
		s.effects[reference]++
	}
	return "e" + strconv.Itoa(s.made)
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client may have left
}
