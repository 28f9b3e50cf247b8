package mockserver

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// sleepMax bounds the sleep parameter.
const sleepMax = 10 * time.Minute

// service is the effect of a server without a Handler: resources under paths.
// It is safe for concurrent use.
type service struct {
	mu        sync.Mutex
	made      int
	resources map[string]map[string]any // by path

	references *keylayer.References // nil: the API takes any
	lists      *lists               // nil: the mock plays none
}

// newService makes the service of an API; owner says whose resources a request makes and lists.
func newService(p *profile.Profile, owner func(*http.Request) keylayer.Digest) *service {
	return &service{resources: map[string]map[string]any{}, references: keylayer.NewReferences(p), lists: newLists(p, owner)}
}

func (v *service) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made, v.resources = 0, map[string]map[string]any{}
	if v.references != nil {
		v.references.Reset()
	}
	if v.lists != nil {
		v.lists.made = nil
	}
}

// ServeHTTP executes one request. Its context ends with the server only.
func (v *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, members, err := parameters(r)
	if err != nil {
		say(w, http.StatusBadRequest, err.Error())
		return
	}
	if !v.steer(w, r) {
		return
	}
	switch parent, last := splitPath(r.URL.Path); {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		v.find(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS, POST, PATCH, PUT, DELETE")
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		v.remove(w, r.URL.Path)
	case r.Method == http.MethodPut && !v.has(r.URL.Path):
		v.create(r, body, members).Write(w)
	case r.Method != http.MethodPost:
		v.change(w, r.URL.Path, "updated", members)
	case v.has(parent):
		v.change(w, parent, last, members)
	case v.references != nil:
		v.references.Take(r, body, func() *keylayer.Answer { return v.create(r, body, members) }).Write(w)
	default:
		v.create(r, body, members).Write(w)
	}
}

// steer obeys the query: sleep, fail, crash. It reports whether to go on.
func (v *service) steer(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if text := query.Get("sleep"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms < 0 || ms > int(sleepMax/time.Millisecond) {
			say(w, http.StatusBadRequest, "sleep is not a number of milliseconds up to 600000")
			return false
		}
		if !keylayer.Pause(time.Duration(ms)*time.Millisecond, r.Context().Done(), nil) {
			panic(http.ErrAbortHandler) // the server has ended
		}
	}
	if query.Get("crash") != "" {
		panic("mockserver: crash=1 was asked for")
	}
	if text := query.Get("fail"); text != "" {
		status, err := strconv.Atoi(text)
		if err != nil || status < 400 || status > 599 {
			say(w, http.StatusBadRequest, "fail is not a status in 400..599")
			return false
		}
		v.fail(w, status)
		return false
	}
	return true
}

// fail answers as an API of the draft does when it refuses, with a number that
// tells a second execution from a stored answer.
func (v *service) fail(w http.ResponseWriter, status int) {
	v.mu.Lock()
	v.made++
	body := map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status,
		"instance": fmt.Sprintf("/failures/%d", v.made),
	}
	if status == http.StatusPaymentRequired {
		body["error"] = map[string]any{"type": "card_error", "code": "card_declined"}
	}
	v.mu.Unlock()
	reply(w, status, keylayer.ProblemType, body)
}

// create makes a new resource under path, also for a PUT, so that each execution can
// be counted, and answers 201. Of members only reference is kept, and all of them where the mock plays the API's lists.
func (v *service) create(r *http.Request, body []byte, members map[string]any) *keylayer.Answer {
	path := "/" + strings.Trim(r.URL.Path, "/")
	v.mu.Lock()
	v.made++
	id := fmt.Sprintf("%s_%d", strings.ReplaceAll(strings.Trim(path, "/"), "/", "_"), v.made)
	resource := map[string]any{"id": id, "status": "created", "bytes": len(body)}
	if reference, ok := members["reference"]; ok {
		resource["reference"] = reference
	}
	v.lists.add(r, body, listed{collection: path, id: id}, resource)
	v.resources[path+"/"+id] = resource
	text, _ := v.text(path + "/" + id)
	v.mu.Unlock()
	a := keylayer.JSONAnswer(http.StatusCreated, keylayer.JSONType, text)
	a.Header.Set("Location", path+"/"+id)
	// A cookie that a replay must not give to another caller.
	a.Header.Set("Set-Cookie", "mock_visit="+id+"; Path=/; HttpOnly")
	return a
}

// find answers a lookup by reference or with a list, or else with the resource at the path.
func (v *service) find(w http.ResponseWriter, r *http.Request) {
	if v.references != nil {
		if a := v.references.Find(r); a != nil {
			a.Write(w)
			return
		}
	}
	if a := v.list(r); a != nil {
		a.Write(w)
		return
	}
	v.read(w, r.URL.Path)
}

// has reports whether there is a resource at path.
func (v *service) has(path string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, found := v.resources[path]
	return found
}

// read answers with the resource at path.
func (v *service) read(w http.ResponseWriter, path string) {
	v.mu.Lock()
	text, found := v.text(path)
	v.mu.Unlock()
	if !found {
		say(w, http.StatusNotFound, "no such resource")
		return
	}
	reply(w, http.StatusOK, keylayer.JSONType, text)
}

// change acts on a resource; the verb becomes its status.
func (v *service) change(w http.ResponseWriter, path, verb string, members map[string]any) {
	v.mu.Lock()
	resource, found := v.resources[path]
	if found {
		resource["status"] = verb
		for name, value := range members {
			if name != "id" && name != "status" {
				resource[name] = value
			}
		}
	}
	text, _ := v.text(path)
	v.mu.Unlock()
	if !found {
		say(w, http.StatusNotFound, "no such resource")
		return
	}
	reply(w, http.StatusOK, keylayer.JSONType, text)
}

// remove deletes the resource at path and answers 204.
func (v *service) remove(w http.ResponseWriter, path string) {
	v.mu.Lock()
	_, found := v.resources[path]
	delete(v.resources, path)
	v.mu.Unlock()
	if !found {
		say(w, http.StatusNotFound, "no such resource")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// text is a resource as JSON; the lock is held.
func (v *service) text(path string) (json.RawMessage, bool) {
	resource, found := v.resources[path]
	if !found {
		return nil, false
	}
	text, err := json.Marshal(resource)
	return text, err == nil
}

// parameters reads the body: a JSON object, a form, or bytes that mean nothing
// here. Only what claims to be JSON can be wrong.
func parameters(r *http.Request) (body []byte, members map[string]any, err error) {
	body, err = keylayer.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return body, nil, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == keylayer.FormType {
		_ = json.Unmarshal(keylayer.AsJSON(r, body), &members) // a form that cannot be read has no members
		return body, members, nil
	}
	if kind == keylayer.JSONType || strings.HasSuffix(kind, "+json") || kind == "" {
		if json.Unmarshal(body, &members) != nil || members == nil {
			return nil, nil, fmt.Errorf("the body is not a JSON object")
		}
	}
	return body, members, nil
}

// splitPath gives the path without its last segment, and that.
func splitPath(path string) (parent, last string) {
	path = "/" + strings.Trim(path, "/")
	at := strings.LastIndexByte(path, '/')
	return path[:at], path[at+1:]
}

// say answers with a problem.
func say(w http.ResponseWriter, status int, detail string) {
	reply(w, status, keylayer.ProblemType, map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}

func reply(w http.ResponseWriter, status int, contentType string, value any) {
	a := keylayer.JSONAnswer(status, contentType, value)
	a.Head(w)
	_, _ = w.Write(a.Body) // the client's absence changes nothing here
}
