package main

import (
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
)

// retention stands in for the 24 hours of the article.
const retention = 3 * time.Second

// shortRetention returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: all is correct but the retention of
// keys, which is shorter than the time for which clients retry.
//
// Repair: after the answer is dropped, the server still knows that the key was used, for longer than any client retries, and refuses it.
func shortRetention(e *env) (handler, error) {
	s, err := e.redis()
	return func(c *call) answer {
		if c.key == "" {
			return problem(http.StatusBadRequest, "a key is missing")
		}
		key := s.prefix + c.caller + ":" + c.key
		if !e.repaired {
			return s.once(c, key, time.Minute, retention)
		}
		ctx := c.Context()
		spent, err := s.Get(ctx, key+":spent").Int()
		if err != nil && err != redis.Nil {
			return problem(http.StatusServiceUnavailable, "no Redis")
		}
		known, err := s.Exists(ctx, key).Result()
		if err != nil {
			return problem(http.StatusServiceUnavailable, "no Redis")
		}
		if spent > 0 && known == 0 {
			return problem(http.StatusGone, "the key was used, and its answer is not kept any more")
		}
		a := s.once(c, key, time.Minute, retention)
		// the key has a final answer
		if a.Status < 500 && a.Status != http.StatusTooManyRequests && a.Status != http.StatusConflict {
			s.Set(ctx, key+":spent", 1, 30*24*time.Hour)
		}
		return a
	}, err
}
