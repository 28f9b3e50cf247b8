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

// sleepMax bounds the query parameter sleep.
const sleepMax = 10 * time.Minute

// service is the handler of a server without Config.Handler: it creates, changes
// and removes resources, each under a path. It is safe for concurrent use.
type service struct {
	mu        sync.Mutex                // guards made, resources and lists.made
	made      int                       // resources and failures so far: the number in the next id
	resources map[string]map[string]any // by path

	references *keylayer.References // nil: the API has no references that are taken once
	lists      *lists               // nil: the mock has no lists for the API
}

// newService returns the mock's service for an API, which has resources and lists. owner returns the caller to whom the resources of a request
// belong. It is called only after the server is complete.
func newService(p *profile.Profile, owner func(*http.Request) keylayer.Digest) *service {
	return &service{resources: map[string]map[string]any{}, references: keylayer.NewReferences(p), lists: newLists(p, owner)}
}

// reset forgets all resources and references; ids begin at 1 again.
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

// ServeHTTP executes one request. Its context ends with the server or a restart only. A POST below a resource changes it: the last segment of the
// path becomes its status. A PUT to a new path creates, as a POST does. It panics for crash=1, and with http.ErrAbortHandler if the context ends
// during sleep.
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

// steer does as the query parameters of a request say: sleep waits, fail answers with an error status, crash panics. It returns
// false if the request is answered by that, and must not be executed.
func (v *service) steer(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	if text := query.Get("sleep"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms < 0 || ms > int(sleepMax/time.Millisecond) {
			say(w, http.StatusBadRequest, "sleep is not a number of milliseconds up to 600000")
			return false
		}
		if !keylayer.Pause(time.Duration(ms)*time.Millisecond, r.Context().Done(), nil) {
			panic(http.ErrAbortHandler) // the server has ended or restarts
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

// fail answers with a problem of the draft. Each has a number of its own, which tells a second execution from a
// stored answer.
func (v *service) fail(w http.ResponseWriter, status int) {
	v.mu.Lock()
	v.made++
	body := map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status,
		"instance": fmt.Sprintf("/failures/%d", v.made),
	}
	if status == http.StatusPaymentRequired {
		// as payment APIs spell a declined card
		body["error"] = map[string]any{"type": "card_error", "code": "card_declined"}
	}
	v.mu.Unlock()
	reply(w, status, keylayer.ProblemType, body)
}

// create makes a new resource under the request's path, with an id of its own even for a PUT so that each execution
// can be counted, and returns a 201. members may be nil; the resource keeps its reference only, unless the mock has
// lists for the API: then all members.
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
	// The cookie of one caller: no replay may give it to another.
	a.Header.Set("Set-Cookie", "mock_visit="+id+"; Path=/; HttpOnly")
	return a
}

// find answers a GET or HEAD: a lookup by business reference, a list, or the resource at the path, in this order.
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

// read answers with the resource at path, or 404.
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

// change sets the members of a resource, and its status to verb; id and status of members are ignored. 404 if there
// is none.
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

// remove deletes the resource at path and answers 204, or 404.
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

// text returns the resource at path as JSON; false: there is none. The lock is held.
func (v *service) text(path string) (json.RawMessage, bool) {
	resource, found := v.resources[path]
	if !found {
		return nil, false
	}
	text, err := json.Marshal(resource)
	return text, err == nil
}

// parameters reads the body: a JSON object, a form, or bytes without meaning here. members is nil for an empty body and for bytes. Only a body that
// should be JSON can be invalid: by its Content-Type, or for want of one that can be read.
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

// splitPath returns the path without its last segment, and that segment, without slashes at the end.
func splitPath(path string) (parent, last string) {
	path = "/" + strings.Trim(path, "/")
	at := strings.LastIndexByte(path, '/')
	return path[:at], path[at+1:]
}

// say answers with a problem of RFC 9457.
func say(w http.ResponseWriter, status int, detail string) {
	reply(w, status, keylayer.ProblemType, map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}

// reply answers with value as JSON.
func reply(w http.ResponseWriter, status int, contentType string, value any) {
	a := keylayer.JSONAnswer(status, contentType, value)
	a.Head(w)
	_, _ = w.Write(a.Body) // an error means that the client has left
}
