package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// tokenFirst returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: the client fetches a token, bound to
// caller and operation, and sends it with the operation; the server deletes it on first use, so that nobody learns the outcome again. The handler
// plays the client's part: it fetches one token for each key, and uses it for every request with the key.
//
// Repair: a used token is kept, with the answer.
func tokenFirst(e *env) (handler, error) {
	s, err := e.redis()
	var mu sync.Mutex
	tokens := map[string]string{} // of the client, by key
	fetch := func(c *call) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if token, fetched := tokens[c.key]; fetched {
			return token, nil
		}
		token := randomText()
		tokens[c.key] = token
		return token, s.Set(c.Context(), s.prefix+"token:"+token, bound(c), 10*time.Minute).Err()
	}
	return func(c *call) answer {
		if c.key == "" {
			return problem(http.StatusBadRequest, "a token is missing")
		}
		token, err := fetch(c)
		if err != nil {
			return problem(http.StatusServiceUnavailable, "no Redis")
		}
		key := s.prefix + "token:" + token
		if e.repaired {
			return s.useToken(c, key)
		}
		found, err := s.GetDel(c.Context(), key).Result()
		switch {
		case err == redis.Nil:
			return problem(http.StatusConflict, "the token was used, or is unknown")
		case err != nil:
			return problem(http.StatusServiceUnavailable, "no Redis")
		case found != bound(c):
			return problem(http.StatusForbidden, "the token is for something else")
		}
		return c.work()
	}, err
}

// bound returns the method, path and caller for which a token is valid.
func bound(c *call) string { return c.Method + " " + c.URL.Path + " " + c.caller }

// useToken is the repair: a token stays valid, and a repeat with it gets the stored answer.
func (s *redisStore) useToken(c *call, key string) answer {
	found, err := s.Get(c.Context(), key).Result()
	switch {
	case err == redis.Nil:
		return problem(http.StatusBadRequest, "the token is unknown")
	case err != nil:
		return problem(http.StatusServiceUnavailable, "no Redis")
	case found != bound(c):
		return problem(http.StatusForbidden, "the token is for something else")
	}
	return s.once(c, key+":used", time.Minute, 24*time.Hour)
}
