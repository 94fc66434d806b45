"""Applications that tell from which port they answer."""

import asyncio


def body(port):
    return b"from %d" % int(port)


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            kind = message["type"]
            print(kind, flush=True)
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    if scope["path"] == "/waits":
        await asyncio.sleep(600)
    text = body(scope["server"][1])
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def wsgi(environ, start_response):
    text = body(environ["SERVER_PORT"])
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]


def flask():
    import flask

    app = flask.Flask("app")

    @app.route("/")
    def answer():
        return body(flask.request.environ["SERVER_PORT"])

    return app
