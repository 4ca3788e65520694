// Package browser opens the pages of the service in a real browser and checks what a reader, a
// keyboard and a screen reader need: the page loads nothing from other hosts, the browser's console
// shows no errors, text has enough contrast, headings and landmarks form an outline, and links lead
// to their targets. The content of the pages is tested in the packages that generate them. Package
// chromium has the browser; the pages of the console are tested in consolebrowser.
package browser
