// Package chromium drives a headless Chromium for tests of pages. It is built with
// the tag browser only.
package chromium
