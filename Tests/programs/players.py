"""Programs that read parts of large files: gdalinfo, mpv."""

import hashlib
import os
import random
import re
import struct

from place import found, scene
from reads import folder, holds


@scene("gdalinfo", "gdal_translate")
def gdal(place):
    """A picture is read in ranges, in whatever order, and its checksum is that of the picture."""

    def publish(seed):
        place.write("mirror/tide.raw", random.Random(seed).randbytes(1000 * 1000))
        # A picture without a compression: so its parts lie everywhere.
        header = '<VRTDataset rasterXSize="1000" rasterYSize="1000"><VRTRasterBand dataType="Byte" band="1" subClass="VRTRawRasterBand">'
        source = '<SourceFilename relativeToVRT="1">tide.raw</SourceFilename></VRTRasterBand></VRTDataset>'
        place.write("mirror/tide.vrt", header + source)
        os.makedirs(place.directory + "/mirror", exist_ok=True)
        status, said = place.run(found("gdal_translate"), "-q", "-co", "TILED=YES", "mirror/tide.vrt", "mirror/tide.tif")
        place.check(status == 0, "a picture: " + said[-300:])

    def read(url, into):
        # The list of the folder is no file.
        own = {"GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_HTTP_TIMEOUT": "20"}
        status, said = place.run(found("gdalinfo"), "-checksum", f"/vsicurl/{url}/tide.tif", environment=own)
        return re.findall("Size is.*|Checksum=.*", said) if status == 0 and "Checksum" in said else said

    publish(1)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(2))


@scene("mpv")
def mpv(place):
    """A recording is played from its middle: the sound is that of the recording."""

    def publish(seed):
        sound = random.Random(seed).randbytes(44_100 * 2 * 10)
        form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 44_100, 88_200, 2, 16)
        place.write(
            "mirror/tide.wav",
            b"RIFF" + struct.pack("<I", 36 + len(sound)) + b"WAVE" + form + b"data" + struct.pack("<I", len(sound)) + sound,
        )

    def read(url, into):
        options = ["--no-config", "--vo=null", "--ao=pcm", f"--ao-pcm-file={into}", "--start=6", "--end=8", "--no-terminal"]
        status, said = place.run(found("mpv"), *options, url + "/tide.wav")
        if status or not os.path.exists(into):
            return f"{status}: {said}"
        with open(into, "rb") as file:
            content = file.read()
        # On a line that is cut the rest is missing, of which mpv only warns.
        return [hashlib.sha256(content).hexdigest()] if len(content) > 170_000 else f"{len(content)} bytes"

    publish(1)
    holds(place, place.site(folder(place.directory + "/mirror")), read, lambda: publish(2))


SCENES = [gdal, mpv]
