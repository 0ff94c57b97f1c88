package web

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// chromium is a browser without a window, driven over a pipe by the protocol of its developer tools: no
// library is needed for the few calls.
type chromium struct {
	t   *testing.T
	to  io.Writer
	mu  sync.Mutex // guards what follows, and to
	id  int
	ask map[int]chan answer
}

// answer is what the browser says to a call.
type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// browsers are the names by which a Chromium is called.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// without ends a test for want of something that it needs: CI installs it, so there it fails, and elsewhere it is skipped.
func without(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// startChromium starts a browser for one test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time: not with -short")
	}
	var path string
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		without(t, "there is no Chromium on this machine, so the page was not tried in a browser: apt-get install chromium")
	}
	toR, toW, err := os.Pipe()
	fromR, fromW, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "mutirao-browser-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
		"--user-data-dir="+home, "about:blank")
	cmd.ExtraFiles = []*os.File{toR, fromW}
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "TZ=UTC", "HOME="+home)
	if err := cmd.Start(); err != nil {
		cancel()
		without(t, "the Chromium of this machine does not start: "+err.Error())
	}
	toR.Close()
	fromW.Close()
	c := &chromium{t: t, to: toW, ask: map[int]chan answer{}}
	read := make(chan struct{})
	go func() { defer close(read); c.read(fromR) }()
	t.Cleanup(func() {
		_, _ = c.try("", "Browser.close", nil)
		cancel()
		_ = cmd.Wait() // it was told to end
		toW.Close()
		fromR.Close()
		<-read
		for range 50 { // its helpers write for a moment longer
			if os.RemoveAll(home) == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return c
}

// read hands on what the browser says.
func (c *chromium) read(from io.Reader) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			break
		}
		var a answer
		if json.Unmarshal(text[:len(text)-1], &a) != nil || a.ID == 0 {
			continue // an event
		}
		c.mu.Lock()
		waits := c.ask[a.ID]
		delete(c.ask, a.ID)
		c.mu.Unlock()
		if waits != nil {
			waits <- a
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, waits := range c.ask {
		delete(c.ask, id)
		close(waits)
	}
}

// try calls a method of the browser, or of a tab.
func (c *chromium) try(session, method string, params any) (json.RawMessage, error) {
	waits := make(chan answer, 1)
	c.mu.Lock()
	c.id++
	call := map[string]any{"id": c.id, "method": method, "params": params}
	if session != "" {
		call["sessionId"] = session
	}
	text, err := json.Marshal(call)
	if err == nil {
		c.ask[c.id] = waits
		_, err = c.to.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case a, ok := <-waits:
		switch {
		case !ok:
			return nil, errors.New("the browser has ended")
		case a.Error != nil:
			return nil, errors.New(a.Error.Message)
		}
		return a.Result, nil
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("%s: no answer", method)
	}
}

// tab is a page in a browser, of one size.
type tab struct {
	*chromium
	session, jar string // jar has its cookies
}

// tabIn opens a tab with the cookies of others.
func (c *chromium) tabIn(jar string) *tab {
	c.t.Helper()
	whole := &tab{chromium: c}
	var target struct{ TargetID string }
	whole.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": jar}, &target)
	var attached struct{ SessionID string }
	whole.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	return &tab{c, attached.SessionID, jar}
}

// beside opens another tab of the same browser.
func (b *tab) beside() *tab {
	b.t.Helper()
	other := b.tabIn(b.jar)
	other.call("Page.enable", nil, nil)
	return other
}

// call calls a method of the tab, and reads its result into a value; nil: it does not matter.
func (b *tab) call(method string, params, into any) {
	b.t.Helper()
	got, err := b.try(b.session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(got, into)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// screenSize is that of a device.
type screenSize struct {
	name          string
	width, height int
	phone         bool
}

// open opens a tab of a size, for a reader of a language.
func (c *chromium) open(size screenSize, lang string, dark bool) *tab {
	c.t.Helper()
	whole := &tab{chromium: c}
	var context struct{ BrowserContextID string }
	whole.call("Target.createBrowserContext", map[string]any{}, &context)
	b := c.tabIn(context.BrowserContextID)
	b.call("Page.enable", nil, nil)
	b.become(size, lang)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	return b
}

// become makes the tab that of a device of a size, for a reader of a language.
func (b *tab) become(size screenSize, lang string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": size.width, "height": size.height, "deviceScaleFactor": 1, "mobile": size.phone}, nil)
	b.call("Network.setUserAgentOverride", map[string]any{"userAgent": "test", "acceptLanguage": lang}, nil)
}

// eval evaluates an expression on the page, and reads its value.
func (b *tab) eval(js string, into any) {
	b.t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": js, "returnByValue": true, "awaitPromise": true}, &got)
	if got.ExceptionDetails != nil {
		b.t.Fatalf("%.200s: %s %s", js, got.ExceptionDetails.Text, got.ExceptionDetails.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		b.t.Fatalf("%.200s: %v in %s", js, err, got.Result.Value)
	}
}

// until waits until an expression holds on the page, whatever page that is by then.
func (b *tab) until(js string) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		got, err := b.try(b.session, "Runtime.evaluate",
			map[string]any{"expression": "document.readyState === 'complete' && !!(" + js + ")", "returnByValue": true})
		var is struct{ Result struct{ Value bool } }
		if err == nil && json.Unmarshal(got, &is) == nil &&
			is.Result.Value { // while a page is left there is none to ask
			return
		}
	}
	var text string
	b.eval("location.href + '\\n' + document.body.innerText", &text)
	b.t.Fatalf("it never came that %s:\n%s", js, text)
}

// visit goes to an address. A page may just be left by itself, as one that asks for itself again: then it is said of
// the next.
func (b *tab) visit(url string) {
	b.t.Helper()
	mark := map[string]any{"expression": "window.left = true"}
	_, err := b.try(b.session, "Runtime.evaluate", mark)
	for began := time.Now(); err != nil && time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		_, err = b.try(b.session, "Runtime.evaluate", mark)
	}
	if err != nil {
		b.t.Fatalf("%s: the page before it cannot be asked: %v", url, err)
	}
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.until("!window.left")
}

// tap taps what a selector finds as a finger does: in its middle, where nothing else may lie above it.
func (b *tab) tap(selector string) {
	b.t.Helper()
	var at struct {
		X, Y float64
		Hit  string
	}
	b.eval(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e) return {hit: "nothing: it is not there"};
		e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
		return {x, y, hit: e.contains(top) ? "" : top ? top.outerHTML.slice(0, 100) : "nothing"};
	})()`, selector), &at)
	if at.Hit != "" {
		b.t.Fatalf("a tap on %s hits %s", selector, at.Hit)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent",
			map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// typing types a text into what a selector finds.
func (b *tab) typing(selector, text string) {
	b.t.Helper()
	b.tap(selector)
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// shoot keeps a picture of the whole page, where MUTIRAO_SHOTS names a folder for people to look at.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("MUTIRAO_SHOTS")
	if dir == "" {
		return
	}
	var got struct{ Data string }
	b.eval("scrollTo(0, 0)", nil)
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &got)
	png, err := base64.StdEncoding.DecodeString(got.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}
