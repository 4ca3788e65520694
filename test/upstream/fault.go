package upstream

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault writes a wrong response. page is the correct one. The context of the request ends with the
// test.
type Fault func(w http.ResponseWriter, r *http.Request, page []byte)

// Status responds with a status and a short text.
func Status(code int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		http.Error(w, "secret text of the upstream", code)
	}
}

// TooManyRequests responds with 429 and Retry-After.
func TooManyRequests(after time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, page []byte) {
		w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		Status(http.StatusTooManyRequests)(w, r, page)
	}
}

// BreakOff closes the connection in the middle of the page.
func BreakOff() Fault {
	return func(w http.ResponseWriter, _ *http.Request, page []byte) {
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = w.Write(page[:len(page)/2]) // the connection is closed in any case
		flush(w)
		panic(http.ErrAbortHandler)
	}
}

// Hang never responds.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ []byte) { <-r.Context().Done() }
}

// HangInside never responds after the first half of the page.
func HangInside() Fault {
	return func(w http.ResponseWriter, r *http.Request, page []byte) {
		_, _ = w.Write(page[:len(page)/2]) // the client may close the connection
		flush(w)
		<-r.Context().Done()
	}
}

// Drip sends one byte of the page in each interval.
func Drip(every time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, page []byte) {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for i := range page {
			if _, err := w.Write(page[i : i+1]); err != nil {
				return
			}
			flush(w)
			select {
			case <-ticks.C:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// HTML responds with a web page and the status 200.
func HTML() Fault {
	return Body("text/html; charset=utf-8", "<!DOCTYPE html><title>Sign in</title>")
}

// Body responds with any text and the status 200.
func Body(contentType, text string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, text) // the client may close the connection
	}
}

// GzipBomb responds with compressed white space before the page; size is its size in bytes after
// decompression.
func GzipBomb(size int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, page []byte) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		block := []byte(strings.Repeat(" ", 1<<20))
		for left := size; left > 0; left -= len(block) {
			if _, err := z.Write(block[:min(left, len(block))]); err != nil {
				return
			}
		}
		_, _ = z.Write(page) // the client may close the connection
	}
}

// Redirect redirects to a URL.
func Redirect(to string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ []byte) { http.Redirect(w, r, to, http.StatusFound) }
}

// RedirectToSelf redirects to the address of the request: a loop.
func RedirectToSelf() Fault {
	return func(w http.ResponseWriter, r *http.Request, _ []byte) {
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
	}
}

func flush(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush() // the client may close the connection
}
