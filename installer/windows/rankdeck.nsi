; The installer for Windows; build.py compiles it. Why it looks like this: docs/decisions/0040.
;
; Layout of the program's folder:
;   Rankdeck.exe, bin\rankdeck.exe   start the version that they name
;   versions\0.1.0-<hash>\           one version: Python with the window's packages, its launchers, files.txt, check.py,
;                                    back.py
;   uninstall.exe
;
; A version is written as versions\NAME.partial, checked, renamed, and only then named by new launchers, which replace the
; old ones in one step. Until that step the version before starts; it is kept, and older ones are removed.
;
;
; Exit codes: 0 done, 1 cancelled, 2 failed, 3 refused: a run or the window is open, or this Windows is too old.

Target amd64-unicode
ManifestDPIAware true
ManifestLongPathAware true
RequestExecutionLevel user
!ifdef FAST
  SetCompressor zlib
!else
  SetCompressor /SOLID lzma
  SetCompressorDictSize 64
!endif
SetDateSave off
CRCCheck on
AllowSkipFiles off
ShowInstDetails nevershow
ShowUninstDetails nevershow

Name "Rankdeck"
OutFile "${OUTPUT}"
BrandingText "Rankdeck ${VERSION}"
InstallDir "$LOCALAPPDATA\Programs\Rankdeck"
InstallDirRegKey HKCU "Software\Microsoft\Windows\CurrentVersion\Uninstall\Rankdeck" "InstallLocation"
!ifdef SIGN
  !uninstfinalize `${SIGN}` = 0 ; without "= 0" a command that fails is only a line of output
  !finalize `${SIGN}` = 0
!endif

!define APP_ID "Rankdeck.Rankdeck" ; as the window's process sets it (app/outside/app_identity.py)
!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\Rankdeck"
!define NEW "$INSTDIR\versions\${FOLDER}"
!define MOVEFILE_REPLACE_EXISTING_WRITE_THROUGH 9
!define ERROR_ALREADY_EXISTS 183

!include LogicLib.nsh
!include MUI2.nsh
!include FileFunc.nsh
!include WinVer.nsh
!include x64.nsh
!include Sections.nsh
!include WinMessages.nsh
!include "Win\COM.nsh"
!include "Win\Propkey.nsh"

VIProductVersion "${VERSION_NUMBERS}"
VIAddVersionKey ProductName "Rankdeck"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "Rankdeck Setup"
VIAddVersionKey LegalCopyright "Licensed under the Apache License 2.0"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_WELCOMEFINISHPAGE_BITMAP "${WELCOME}"
!define MUI_ABORTWARNING
!define MUI_WELCOMEPAGE_TITLE "Install Rankdeck ${VERSION}"
!define MUI_WELCOMEPAGE_TEXT "Rankdeck trains PyTorch models on the GPUs of this PC.$\r$\n$\r$\nIt is installed for you only, without administrator rights. PyTorch is installed later, from the window, in the build that fits your GPUs."
!define MUI_DIRECTORYPAGE_TEXT_TOP "Runs, datasets and PyTorch are not stored here."
!define MUI_FINISHPAGE_TITLE "Rankdeck is installed"
!define MUI_FINISHPAGE_TEXT "You find it in the Start menu."
!define MUI_FINISHPAGE_RUN "$INSTDIR\Rankdeck.exe"
!define MUI_FINISHPAGE_RUN_TEXT "Open Rankdeck"
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_DIRECTORY
!define MUI_COMPONENTSPAGE_NODESC
!define MUI_COMPONENTSPAGE_TEXT_TOP "With the command, you can write rankdeck in a terminal, as the documentation does."
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH

!define MUI_COMPONENTSPAGE_TEXT_TOP "Your runs stay where they are unless you tick them."
!define MUI_PAGE_CUSTOMFUNCTION_SHOW un.HideSpace
!insertmacro MUI_UNPAGE_COMPONENTS
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Var IsThere
Var Before ; the folder of the version that was installed before; empty if there was none
Var IsDamaged ; "1": its program does not start

; Says what is wrong in a message and in setup.log, and ends. Nothing that starts has been changed.
!macro Fail CODE TEXT
  Push "${TEXT}"
  Push ${CODE}
  Call ${UN}Fail
!macroend
!define Fail "!insertmacro Fail"

; "Space required" says nothing where files are removed.
Function un.HideSpace
  ShowWindow $mui.ComponentsPage.SpaceRequired ${SW_HIDE}
FunctionEnd

!macro FailFunction
Function ${UN}Fail
  Exch $0
  Exch
  Exch $1
  CreateDirectory "$LOCALAPPDATA\Rankdeck"
  FileOpen $2 "$LOCALAPPDATA\Rankdeck\setup.log" w
  FileWriteUTF16LE /BOM $2 "$1$\r$\n"
  FileClose $2
  MessageBox MB_OK|MB_ICONSTOP "$1" /SD IDOK
  SetErrorLevel $0
  Quit
FunctionEnd

; Refuses while a run is being trained, or while the window is open.
Function ${UN}RefuseWhileInUse
  ReadRegStr $Before HKCU "${KEY}" "VersionFolder"
  ${If} $Before != ""
    nsExec::ExecToStack '"$INSTDIR\versions\$Before\python\python.exe" -I -m rankdeck runs --live --json'
    Pop $0
    Pop $1
    StrCpy $1 $1 2
    ${If} $0 != 0
      StrCpy $IsDamaged 1 ; it cannot be asked, and must not keep a person from repairing or removing it
    ${ElseIf} $1 != "[]"
      ${Fail} 3 "A run is being trained. Stop it or wait until it has ended, then start this program again."
    ${EndIf}
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\Rankdeck.exe"
    Retry:
    ClearErrors
    FileOpen $0 "$INSTDIR\Rankdeck.exe" a ; a program that runs cannot be opened for writing
    ${If} ${Errors}
      MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "Rankdeck is open. Close its window, then try again." /SD IDCANCEL IDRETRY Retry
      ${Fail} 3 "Rankdeck is open. Close its window, then start this program again."
    ${EndIf}
    FileClose $0
  ${EndIf}
FunctionEnd
!macroend

!define UN ""
!insertmacro FailFunction
!undef UN
!define UN "un."
!insertmacro FailFunction
!undef UN
!define UN ""

Function CheckFolder
  ClearErrors
  CreateDirectory "$INSTDIR\versions"
  FileOpen $0 "$INSTDIR\versions\writable.tmp" w
  ${If} ${Errors}
    ${Fail} 2 "The folder $INSTDIR cannot be written. Choose another one."
  ${EndIf}
  FileClose $0
  Delete "$INSTDIR\versions\writable.tmp"
  ${DriveSpace} "$INSTDIR" "/D=F /S=K" $0
  ; The new version needs its own size once, beside the one before.
  ${If} $0 <> 0
  ${AndIf} $0 < ${SIZE_KB}
    IntOp $1 ${SIZE_KB} / 1024
    ${Fail} 2 "Rankdeck needs $1 MB on this drive. Free some space or choose another drive, then start this program again."
  ${EndIf}
FunctionEnd

; Runs a version's own check. $0 is "0" if it passed; $1 is what it said.
!macro Check FOLDER
  nsExec::ExecToStack '"${FOLDER}\python\python.exe" -I "${FOLDER}\check.py"'
  Pop $0
  Pop $1
!macroend

; $IsThere is "1" if this very version is there, and whole.
Function LookForVersion
  StrCpy $IsThere 0
  ${If} ${FileExists} "${NEW}\check.py"
    !insertmacro Check "${NEW}"
    ${If} $0 == 0
      StrCpy $IsThere 1
    ${EndIf}
  ${EndIf}
FunctionEnd

; The files are written: the error flag tells of them.
Function CheckVersion
  ${If} ${Errors}
    RMDir /r "${NEW}.partial"
    ${Fail} 2 "Files could not be written to $INSTDIR. Check that the drive is not full, then start this program again. What was installed before is unchanged."
  ${EndIf}
  !insertmacro Check "${NEW}.partial"
  ${If} $0 != 0
    RMDir /r "${NEW}.partial"
    ${Fail} 2 "The new version does not start on this PC: $1 What was installed before is unchanged."
  ${EndIf}
  RMDir /r "${NEW}"
  ClearErrors
  Rename "${NEW}.partial" "${NEW}"
  ${If} ${Errors}
    ${Fail} 2 "The folder ${NEW} could not be written; another program may use it. Start this program again. What was installed before is unchanged."
  ${EndIf}
FunctionEnd

; Replaces a launcher in one step.
!macro ReplaceLauncher NAME
  ClearErrors
  CopyFiles /SILENT "${NEW}\launchers\${NAME}" "$INSTDIR\${NAME}.new"
  System::Call 'kernel32::MoveFileExW(w "$INSTDIR\${NAME}.new", w "$INSTDIR\${NAME}", i ${MOVEFILE_REPLACE_EXISTING_WRITE_THROUGH}) i .r0'
  ${If} $0 == 0
  ${OrIf} ${Errors}
    Delete "$INSTDIR\${NAME}.new"
    ${Fail} 2 "$INSTDIR\${NAME} could not be replaced. Close Rankdeck and its commands, then start this program again. What was installed before is unchanged."
  ${EndIf}
!macroend

Function SwitchToVersion
  CreateDirectory "$INSTDIR\bin"
  !insertmacro ReplaceLauncher "Rankdeck.exe"
  !insertmacro ReplaceLauncher "bin\rankdeck.exe"
FunctionEnd

; Writes the program's id into the Start menu's entry: toasts and a pinned button belong to it. Nothing depends on it.
; https://learn.microsoft.com/windows/win32/properties/props-system-appusermodel-id
Function SetAppId
  !insertmacro ComHlpr_CreateInProcInstance ${CLSID_ShellLink} ${IID_IShellLink} r0 ""
  ${If} $0 P= 0
    Return
  ${EndIf}
  ${IUnknown::QueryInterface} $0 '("${IID_IPersistFile}",.r1)'
  ${If} $1 P<> 0
    ${IPersistFile::Load} $1 '("$SMPROGRAMS\Rankdeck.lnk",2)' ; STGM_READWRITE
    ${IUnknown::QueryInterface} $0 '("${IID_IPropertyStore}",.r2)'
    ${If} $2 P<> 0
      System::Call '*${SYSSTRUCT_PROPERTYKEY}(${PKEY_AppUserModel_ID})p.r3'
      System::Call '*(&w64 "${APP_ID}")p.r4'
      System::Call '*${SYSSTRUCT_PROPVARIANT}(${VT_LPWSTR},,&i8 $4)p.r5'
      ${IPropertyStore::SetValue} $2 '($3,$5)'
      ${IPropertyStore::Commit} $2 ""
      System::Free $3
      System::Free $4
      System::Free $5
      ${IUnknown::Release} $2 ""
      ${IPersistFile::Save} $1 '("$SMPROGRAMS\Rankdeck.lnk",1)'
    ${EndIf}
    ${IUnknown::Release} $1 ""
  ${EndIf}
  ${IUnknown::Release} $0 ""
FunctionEnd

Function Register
  WriteUninstaller "$INSTDIR\uninstall.new.exe"
  System::Call 'kernel32::MoveFileExW(w "$INSTDIR\uninstall.new.exe", w "$INSTDIR\uninstall.exe", i ${MOVEFILE_REPLACE_EXISTING_WRITE_THROUGH})'
  SetOutPath "$INSTDIR"
  CreateShortcut "$SMPROGRAMS\Rankdeck.lnk" "$INSTDIR\Rankdeck.exe" "" "${NEW}\rankdeck.ico"
  Call SetAppId
  WriteRegStr HKCU "${KEY}" "DisplayName" "Rankdeck"
  WriteRegStr HKCU "${KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${KEY}" "DisplayIcon" "${NEW}\rankdeck.ico"
  WriteRegStr HKCU "${KEY}" "Publisher" "Rankdeck"
  WriteRegStr HKCU "${KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S _?=$INSTDIR'
  WriteRegDWORD HKCU "${KEY}" "EstimatedSize" ${SIZE_KB}
  WriteRegDWORD HKCU "${KEY}" "NoModify" 1
  WriteRegDWORD HKCU "${KEY}" "NoRepair" 1
  ${If} $Before != ""
  ${AndIf} $Before != "${FOLDER}"
    WriteRegStr HKCU "${KEY}" "PreviousFolder" "$Before" ; the way back, also after this version is installed again
  ${EndIf}
  WriteRegStr HKCU "${KEY}" "VersionFolder" "${FOLDER}"
FunctionEnd

; Removes what no launcher names and is not the version before. One that is in use stays until the next time.
Function RemoveOldVersions
  ReadRegStr $2 HKCU "${KEY}" "PreviousFolder"
  FindFirst $0 $1 "$INSTDIR\versions\*"
  ${DoWhile} $1 != ""
    ${If} $1 != "."
    ${AndIf} $1 != ".."
    ${AndIf} $1 != "${FOLDER}"
    ${AndIf} $1 != $2
      RMDir /r "$INSTDIR\versions\$1"
    ${EndIf}
    FindNext $0 $1
  ${Loop}
  FindClose $0
FunctionEnd

Section "Rankdeck"
  SectionIn RO
  Call CheckFolder
  Call RefuseWhileInUse
  Call LookForVersion
  ${If} $IsThere == 0
    RMDir /r "${NEW}.partial"
    ClearErrors
    !include "${PAYLOAD}" ; here: of a function NSIS counts neither the space nor the progress
    SetOutPath "$INSTDIR"
    Call CheckVersion
  ${EndIf}
  Call SwitchToVersion
  Call Register
  Call RemoveOldVersions
SectionEnd

Section "Command: rankdeck" COMMAND
SectionEnd

Section "-Last"
  ${If} ${SectionIsSelected} ${COMMAND}
    WriteRegStr HKCU "${KEY}" "CommandOnPath" "1"
    nsExec::ExecToStack '"${NEW}\python\python.exe" -I "${NEW}\command_path.py" add "$INSTDIR\bin"'
  ${Else}
    WriteRegStr HKCU "${KEY}" "CommandOnPath" "0"
    nsExec::ExecToStack '"${NEW}\python\python.exe" -I "${NEW}\command_path.py" remove "$INSTDIR\bin"'
  ${EndIf}
  Pop $0
  Pop $1
  ${If} $0 != 0 ; nothing else depends on it
    DetailPrint "The command could not be put on PATH: $1"
  ${EndIf}
SectionEnd

Function .onInit
  ${IfNot} ${RunningX64}
  ${OrIfNot} ${AtLeastWin10}
    ${Fail} 3 "Rankdeck needs a 64-bit Windows 10 or newer."
  ${EndIf}
  System::Call 'kernel32::CreateMutexW(p 0, i 0, w "Local\RankdeckSetup") p .r1 ?e'
  Pop $0
  ${If} $0 == ${ERROR_ALREADY_EXISTS}
    ${Fail} 3 "Another setup of Rankdeck is running. Wait until it has ended."
  ${EndIf}
  ${GetParameters} $0
  ; NSIS takes /D= away where it understands it: as the last argument, without quotes.
  StrCpy $1 0
  ${Do}
    StrCpy $2 $0 3 $1
    ${If} $2 == "/D="
      ${Fail} 2 "The folder was not understood: give /D=FOLDER as the last argument, without quotes."
    ${EndIf}
    IntOp $1 $1 + 1
  ${LoopUntil} $2 == ""
  ReadRegStr $1 HKCU "${KEY}" "CommandOnPath" ; as it was chosen before
  ${If} $1 == "0"
    !insertmacro UnselectSection ${COMMAND}
  ${EndIf}
  ClearErrors
  ${GetOptions} $0 "/NOPATH" $1
  ${IfNot} ${Errors}
    !insertmacro UnselectSection ${COMMAND}
  ${EndIf}
FunctionEnd

!undef UN
!define UN "un."

; Has the program do something; ends where it cannot, and says why.
!macro Ask COMMAND FAILURE
  nsExec::ExecToStack '"$INSTDIR\versions\$Before\python\python.exe" -I -m rankdeck ${COMMAND}'
  Pop $0
  Pop $1
  ${If} $0 != 0
    ${If} $IsDamaged == 1
      ${Fail} 2 "${FAILURE}: the program does not start. Start its setup once more, then this one again; or leave your data where it is."
    ${EndIf}
    ${Fail} 2 "${FAILURE}: $1"
  ${EndIf}
!macroend

; Takes the folder of the command off the person's PATH without Python. NSIS would cut a long PATH at its longest string,
; so Windows' own functions do it, in a buffer of 32,767 letters, the most that a variable can have.
Function un.RemoveFromPath
  ; HKEY_CURRENT_USER; KEY_QUERY_VALUE and KEY_SET_VALUE
  System::Call 'advapi32::RegOpenKeyExW(p 0x80000001, w "Environment", i 0, i 3, *p .r1) i .r0'
  ${If} $0 <> 0
    Return
  ${EndIf}
  System::Alloc 65536
  Pop $2
  System::Call 'advapi32::RegQueryValueExW(p r1, w "Path", p 0, *i .r3, p r2, *i 65534) i .r0'
  ${If} $0 == 0
    System::Call 'shlwapi::StrStrIW(p r2, w "$INSTDIR\bin") p .r4'
    ${If} $4 P<> 0
      StrLen $5 "$INSTDIR\bin"
      IntOp $5 $5 * ${NSIS_CHAR_SIZE}
      IntPtrOp $5 $4 + $5 ; what follows it
      System::Call '*$5(&i2 .r6)'
      ${If} $6 = 59 ; a semicolon
        IntPtrOp $5 $5 + ${NSIS_CHAR_SIZE}
      ${ElseIf} $6 <> 0 ; another folder, which begins with the same letters
        StrCpy $4 0
      ${ElseIf} $4 P<> $2
        IntPtrOp $4 $4 - ${NSIS_CHAR_SIZE} ; the last one: the semicolon before it goes
      ${EndIf}
    ${EndIf}
    ${If} $4 P<> 0
      System::Call 'kernel32::lstrlenW(p r5) i .r6'
      IntOp $6 $6 + 1
      IntOp $6 $6 * ${NSIS_CHAR_SIZE}
      System::Call 'kernel32::RtlMoveMemory(p r4, p r5, p r6)'
      System::Call 'kernel32::lstrlenW(p r2) i .r6'
      IntOp $6 $6 + 1
      IntOp $6 $6 * ${NSIS_CHAR_SIZE}
      System::Call 'advapi32::RegSetValueExW(p r1, w "Path", i 0, i r3, p r2, i r6)'
      SendMessage ${HWND_BROADCAST} ${WM_SETTINGCHANGE} 0 "STR:Environment" /TIMEOUT=2000
    ${EndIf}
  ${EndIf}
  System::Free $2
  System::Call 'advapi32::RegCloseKey(p r1)'
FunctionEnd

Section "un.Rankdeck" UNPROGRAM
  SectionIn RO
  Call un.RefuseWhileInUse
SectionEnd

Section /o "un.All my runs, checkpoints and settings" UNDATA
  !insertmacro Ask "rm --all --permanently" "Your runs could not be deleted"
  RMDir /r "$LOCALAPPDATA\Rankdeck\runs\cache"
  RMDir /r "$LOCALAPPDATA\Rankdeck\live-runs"
  Delete "$LOCALAPPDATA\Rankdeck\*.json"
  Delete "$LOCALAPPDATA\Rankdeck\*.txt"
  DeleteRegKey HKCU "Software\Rankdeck"
SectionEnd

Section "un.PyTorch and the other packages for training" UNENVIRONMENTS
  ${If} $IsDamaged == 1
    RMDir /r "$LOCALAPPDATA\Rankdeck\environments" ; where they are unless another folder was chosen
  ${Else}
    !insertmacro Ask "environment remove --all" "The packages for training could not be removed"
  ${EndIf}
SectionEnd

Section "-un.Files"
  ; Only what was installed: the folder may hold other things of the person's.
  nsExec::ExecToStack '"$INSTDIR\versions\$Before\python\python.exe" -I "$INSTDIR\versions\$Before\command_path.py" remove "$INSTDIR\bin"'
  Pop $0
  Pop $1
  ${If} $0 != 0
    Call un.RemoveFromPath ; a damaged program's Python does not start
  ${EndIf}
  Delete "$SMPROGRAMS\Rankdeck.lnk"
  Delete "$INSTDIR\Rankdeck.exe"
  Delete "$INSTDIR\bin\rankdeck.exe"
  RMDir "$INSTDIR\bin"
  RMDir /r "$INSTDIR\versions"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  ${If} ${FileExists} "$INSTDIR\uninstall.exe" ; it runs in place, so that its exit code is seen: it goes a moment later
    Exec '"$SYSDIR\cmd.exe" /d /c "for /l %i in (1,1,30) do @(del /q "$INSTDIR\uninstall.exe" & rmdir "$INSTDIR" & if not exist "$INSTDIR\uninstall.exe" exit & ping -n 2 127.0.0.1)"'
  ${EndIf}
  Delete "$LOCALAPPDATA\Rankdeck\setup.log"
  Delete "$LOCALAPPDATA\Rankdeck\start-failed.txt"
  RMDir /r "$LOCALAPPDATA\Rankdeck\open-windows"
  RMDir /r "$LOCALAPPDATA\Rankdeck\updates" ; setups that an earlier window downloaded
  Delete "$LOCALAPPDATA\Rankdeck\logs\update.log"
  RMDir "$LOCALAPPDATA\Rankdeck\logs"
  RMDir "$LOCALAPPDATA\Rankdeck\runs"
  RMDir "$LOCALAPPDATA\Rankdeck" ; only if it is empty: no run, no setting
  DeleteRegKey HKCU "${KEY}"
SectionEnd

Function un.onInit
  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/DATA" $1
  ${IfNot} ${Errors}
    !insertmacro SelectSection ${UNDATA}
  ${EndIf}
FunctionEnd
